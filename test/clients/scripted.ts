/**
 * A script that answers as a model would: JSON on request, a call where a tool fits, endlessly when asked for much, and
 * no context in raw mode.
 */
import type { ChosenLogprob, InferenceEvent } from "../../src/runtime/runtime.ts";
import { DONE, pause, type Script } from "../server/fakes.ts";

export const scripted: Script = async function* (request) {
  while ((request.options.num_predict ?? 0) > 1000) {
    await pause(5, request.signal);
    yield { kind: "text", text: request.format ? '{"next":' : "word " };
  }
  const wantsTool = "tools" in request && request.messages.at(-1)?.role === "user" && !request.format;
  if (wantsTool) yield { kind: "toolCall", call: { function: { name: "get_weather", arguments: { city: "Paris" } } } };
  else for (const text of request.format ? ['{"ok": true}'] : ["Hello", "!"]) yield said(text, request.logprobs);
  yield "raw" in request && request.raw ? withoutContext(DONE) : DONE;
};

function said(text: string, count: number | undefined): InferenceEvent {
  if (count === undefined) return { kind: "text", text };
  const token = { token: text, bytes: [...new TextEncoder().encode(text)], logprob: -0.1 };
  const chosen: ChosenLogprob = { ...token, top: Array.from({ length: count }, () => token) };
  return { kind: "text", text, logprobs: [chosen] };
}

function withoutContext(event: InferenceEvent): InferenceEvent {
  return event.kind === "done" && event.statistics
    ? { kind: "done", reason: event.reason, statistics: event.statistics }
    : event;
}
