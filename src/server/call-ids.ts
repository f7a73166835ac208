/** Identity of tool calls: clients pair each result with its call by the id. */
import type { InferenceEvent } from "../runtime/runtime.ts";

/** Numbers tool calls from 0 and names those that have no id. */
export async function* withCallIds(events: AsyncIterable<InferenceEvent>): AsyncGenerator<InferenceEvent, void, void> {
  let index = 0;
  for await (const event of events) {
    if (event.kind !== "toolCall") yield event;
    else {
      const call = { id: event.call.id ?? callId(), function: { index, ...event.call.function } };
      yield { kind: "toolCall", call };
      index++;
    }
  }
}

/** `call_` and eight letters or digits. */
function callId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return `call_${Array.from(bytes, (byte) => (byte % 36).toString(36)).join("")}`;
}

/** Leaves out all tool calls after the first, for clients that take one at a time. */
export async function* firstCallOnly(
  events: AsyncIterable<InferenceEvent>,
): AsyncGenerator<InferenceEvent, void, void> {
  let called = false;
  for await (const event of events) {
    if (event.kind === "toolCall" && called) continue;
    called ||= event.kind === "toolCall";
    yield event;
  }
}
