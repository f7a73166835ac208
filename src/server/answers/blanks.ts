/**
 * Blanks around tool calls and before an answer are layout, not part of the answer. They are held back until the next
 * text shows which they are.
 */
import type { ChosenLogprob } from "../../runtime/portable.ts";
import type { AnswerEvent, Stage } from "./answer.ts";

/**
 * Leading blanks are sent with the text after them, or dropped before a tool call. An answer that consists of blanks is
 * kept.
 */
export function withoutBlanks(): Stage {
  let held = "";
  let logprobs: ChosenLogprob[] = [];
  let speaking = false;
  let called = false;
  const release = (): AnswerEvent => {
    const event = { kind: "text", text: held, ...(logprobs.length > 0 ? { logprobs } : {}) } as const;
    [held, logprobs] = ["", []];
    return event;
  };
  return (event) => {
    if (event.kind === "text" && !speaking) {
      held += event.text;
      logprobs.push(...(event.logprobs ?? []));
      speaking = event.text.trim() !== "";
      return speaking ? [release()] : [];
    }
    if (event.kind === "thinking") logprobs = []; // they belong to the thinking
    if (event.kind === "toolCall" || event.kind === "cutCall") {
      called = true;
      [held, logprobs] = ["", []];
    }
    const isHeld = held !== "" || logprobs.length > 0;
    const last = event.kind === "done" && isHeld && !called ? [release()] : [];
    speaking = event.kind === "text";
    return [...last, event];
  };
}
