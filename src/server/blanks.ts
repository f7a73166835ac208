/**
 * Blanks around tool calls and before an answer are how models lay out their text, not what they say. They are held
 * until it is clear which they are.
 */
import type { ChosenLogprob, InferenceEvent } from "../runtime/runtime.ts";

/**
 * Blanks at the beginning of a text come with what follows it, or not at all where that is a tool call. An answer of
 * blanks alone stays.
 */
export async function* withoutBlanks(
  events: AsyncIterable<InferenceEvent>,
): AsyncGenerator<InferenceEvent, void, void> {
  let held = "";
  let logprobs: ChosenLogprob[] = [];
  let speaking = false;
  let called = false;
  const release = (): InferenceEvent => {
    const event = { kind: "text", text: held, ...(logprobs.length > 0 ? { logprobs } : {}) } as const;
    [held, logprobs] = ["", []];
    return event;
  };
  for await (const event of events) {
    if (event.kind === "text" && !speaking) {
      held += event.text;
      logprobs.push(...(event.logprobs ?? []));
      speaking = event.text.trim() !== "";
      if (speaking) yield release();
      continue;
    }
    if (event.kind === "thinking") logprobs = []; // they told of what was thought
    if (event.kind === "toolCall") {
      called = true;
      [held, logprobs] = ["", []];
    }
    if (event.kind === "done" && held !== "" && !called) yield release();
    speaking = event.kind === "text";
    yield event;
  }
}
