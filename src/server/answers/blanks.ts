/**
 * Blanks around tool calls and before an answer are how models lay out their text, not what they say. They are held
 * until it is clear which they are.
 */
import type { ChosenLogprob } from "../../runtime/portable.ts";
import type { AnswerEvent, Stage } from "./answer.ts";

/**
 * Blanks at the beginning of a text come with what follows it, or not at all where that is a tool call. An answer of
 * blanks alone stays.
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
    if (event.kind === "thinking") logprobs = []; // they told of what was thought
    if (event.kind === "toolCall" || event.kind === "cutCall") {
      called = true;
      [held, logprobs] = ["", []];
    }
    const last = event.kind === "done" && held !== "" && !called ? [release()] : [];
    speaking = event.kind === "text";
    return [...last, event];
  };
}
