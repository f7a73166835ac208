/**
 * Splits thinking from the answer by the template's tags around thoughts. An opening tag counts only after nothing but
 * white space, or at the end of the prompt; after the closing tag everything is the answer. White space beside the tags
 * is dropped.
 */
import type { ThinkingTags } from "../../engine/index.ts";
import { heldLength, type ParsedEvent, type TextParser } from "./format.ts";

/** @param isOpen the prompt ends with the opening tag */
export function makeThinkingSplitter({ open, close }: ThinkingTags, isOpen: boolean): TextParser {
  let state: "start" | "thinking" | "answer" = isOpen ? "thinking" : "start";
  let pending = "";
  let isBehindTag = isOpen;

  const takeStart = (): boolean => {
    const text = pending.trimStart();
    if (open.startsWith(text) && text !== open) return false; // a possible start of the tag
    state = text.startsWith(open) ? "thinking" : "answer";
    if (state === "answer") return true;
    pending = text.slice(open.length);
    isBehindTag = true;
    return true;
  };

  /** Drops white space after a tag; false: more may follow. */
  const dropWhite = (): boolean => {
    pending = pending.trimStart();
    isBehindTag = pending === "";
    return !isBehindTag;
  };

  const takeThinking = (events: ParsedEvent[]): boolean => {
    if (isBehindTag && !dropWhite()) return false;
    const end = pending.indexOf(close);
    const text = pending.slice(0, end < 0 ? pending.length - heldLength(pending, close) : end);
    const kept = text.trimEnd(); // white space before the closing tag belongs to it
    if (kept !== "") events.push({ kind: "thinking", text: kept });
    if (end < 0) {
      pending = pending.slice(kept.length);
      return false;
    }
    pending = pending.slice(end + close.length);
    state = "answer";
    isBehindTag = true;
    return true;
  };

  const takeAnswer = (events: ParsedEvent[]): boolean => {
    if (isBehindTag && !dropWhite()) return false;
    if (pending !== "") events.push({ kind: "text", text: pending });
    pending = "";
    return false;
  };

  return {
    push(text) {
      const events: ParsedEvent[] = [];
      pending += text;
      const take = { start: takeStart, thinking: takeThinking, answer: takeAnswer };
      while (take[state](events));
      return events;
    },
    end() {
      const events: ParsedEvent[] = [];
      const text = isBehindTag ? pending.trimStart() : pending;
      if (text !== "") events.push({ kind: state === "thinking" ? "thinking" : "text", text });
      pending = "";
      return events;
    },
  };
}
