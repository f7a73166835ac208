/**
 * A script in place of a model: answers JSON on request, calls a fitting tool, goes on endlessly for large limits, and
 * returns no context in raw mode.
 */
import type {
  ChatRequest,
  ChosenLogprob,
  GenerateRequest,
  InferenceEvent,
} from "../../src/runtime/requests/runtime.ts";
import { DONE, pause, type Script } from "../server/fakes.ts";

export const scripted: Script = async function* (request) {
  while ((request.options.num_predict ?? 0) > 1000) {
    await pause(5, request.signal);
    yield { kind: "text", text: request.format ? '{"next":' : "word " };
  }
  const name = callOf(request);
  if (name) yield { kind: "toolCall", call: { function: { name, arguments: { city: "Paris" } } } };
  else for (const text of request.format ? ['{"ok": true}'] : ["Hello", "!"]) yield said(text, request.logprobs);
  yield "raw" in request && request.raw ? withoutContext(DONE) : DONE;
};

/** The tool to call: the required one, or the weather tool after a question, if allowed. */
function callOf(request: ChatRequest | GenerateRequest): string | undefined {
  if (!("messages" in request) || !request.tools || request.format) return undefined;
  const { toolChoice = "auto" } = request;
  if (typeof toolChoice === "object") return toolChoice.name;
  return toolChoice !== "none" && request.messages.at(-1)?.role === "user" ? "get_weather" : undefined;
}

function said(text: string, count: number | undefined): InferenceEvent {
  if (count === undefined) return { kind: "text", text };
  const token = { id: 1, token: text, bytes: [...new TextEncoder().encode(text)], logprob: -0.1 };
  const chosen: ChosenLogprob = { ...token, top: Array.from({ length: count }, () => token) };
  return { kind: "text", text, logprobs: [chosen] };
}

function withoutContext(event: InferenceEvent): InferenceEvent {
  return event.kind === "done" && event.statistics
    ? { kind: "done", reason: event.reason, statistics: event.statistics }
    : event;
}
