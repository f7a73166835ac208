/** Ids of tool calls: clients pair each result with its call by the id. */
import type { Stage } from "./answer.ts";

/** Numbers tool calls from 0 and adds missing ids. */
export function withCallIds(): Stage {
  let index = 0;
  return (event) => {
    if (event.kind !== "toolCall" && event.kind !== "cutCall") return [event];
    const id = event.call.id ?? callId();
    const at = index++;
    return event.kind === "toolCall"
      ? [{ kind: "toolCall", call: { id, function: { index: at, ...event.call.function } } }]
      : [{ kind: "cutCall", call: { ...event.call, id, function: { index: at, ...event.call.function } } }];
  };
}

/** `call_` and eight letters or digits. */
function callId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return `call_${Array.from(bytes, (byte) => (byte % 36).toString(36)).join("")}`;
}

/** Drops all tool calls after the first, for clients that accept only one. */
export function firstCallOnly(): Stage {
  let called = false;
  return (event) => {
    const isCall = event.kind === "toolCall" || event.kind === "cutCall";
    if (isCall && called) return [];
    called ||= isCall;
    return [event];
  };
}
