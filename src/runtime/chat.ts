/**
 * Chat: messages rendered by the model's template, the oldest dropped until they fit the context, and tool calls taken
 * out of the answer's text.
 */
import { AppError } from "../base/errors.ts";
import type { ModelEntry } from "../store/store.ts";
import { fullName } from "../store/name.ts";
import { capabilitiesOf, renderChat, type PromptTemplate } from "../template/prompt.ts";
import { answer, lease, refuseEmbedder, refuseImages, templateOf, type Loaded, type RuntimeParts } from "./answer.ts";
import { fitMessages, type Fitted } from "./fit.ts";
import { detectToolFormat, makeToolCallParser, type ToolCallParser } from "./parse/index.ts";
import type { RunnerProcess } from "./runner-process.ts";
import type { ChatRequest, InferenceEvent, Message } from "./runtime.ts";

export async function* runChat(parts: RuntimeParts, request: ChatRequest): AsyncGenerator<InferenceEvent, void, void> {
  const model = await parts.load(request.model);
  if (request.messages.length === 0 && request.keepAliveMs === 0) {
    parts.pool.unload(model.paths.model);
    yield { kind: "done", reason: "unload" };
    return;
  }
  for (const message of request.messages) refuseImages(message.images, request.model);
  const loaded = await lease(parts, model, request);
  try {
    refuseEmbedder(loaded, { model: request.model, task: "chat" });
    if (request.messages.length === 0) {
      yield { kind: "done", reason: "load" };
      return;
    }
    const template = templateOf(loaded);
    if (request.tools && !capabilitiesOf(template).tools) {
      throw new AppError("bad_request", `${fullName(model.name)} does not support tools`);
    }
    const events = answer(loaded, {
      ...(await fittingPrompt({ parts, loaded, template, request })),
      context: [],
      options: request.options,
      format: request.format,
      signal: request.signal,
      wantsContext: false,
      logprobs: request.logprobs,
      truncate: request.truncate,
      shift: request.shift,
    });
    yield* withToolCalls(events, toolParser(template, request));
  } finally {
    loaded.lease.release();
  }
}

/** The prompt of all messages, or of as many as fit where the request lets the oldest go. */
async function fittingPrompt(about: {
  parts: RuntimeParts;
  loaded: Loaded;
  template: PromptTemplate;
  request: ChatRequest;
}): Promise<Fitted> {
  const { parts, loaded, template, request } = about;
  const { runner } = loaded.lease;
  const render = (messages: readonly Message[]): string =>
    renderChat(template, { messages, now: parts.now(), ...(request.tools ? { tools: request.tools } : {}) });
  const messages = withModelMessages(loaded.model, request.messages);
  if (request.truncate === false) return { prompt: render(messages), truncated: false };
  return fitMessages(messages, { render, fits: (prompt) => fitsContext(runner, prompt) });
}

/** One token is at least one byte, so a short prompt need not be counted. */
const fitsContext = async (runner: RunnerProcess, prompt: string): Promise<boolean> =>
  prompt.length * 3 < runner.info.ctxLen || (await runner.countTokens(prompt)) < runner.info.ctxLen;

/** The model's own system text, where the caller brings none, and its example messages come first. */
export function withModelMessages(model: ModelEntry, messages: readonly Message[]): readonly Message[] {
  const system = messages[0]?.role === "system" || !model.system ? [] : [{ role: "system", content: model.system }];
  return [...system, ...model.messages, ...messages];
}

function toolParser(template: PromptTemplate, request: ChatRequest): ToolCallParser | undefined {
  const format = request.tools && detectToolFormat(template.source);
  return format && makeToolCallParser(format);
}

/** Takes tool calls out of the text. What is known of a token is told at once, also while the parser holds its text. */
async function* withToolCalls(
  events: AsyncIterable<InferenceEvent>,
  parser: ToolCallParser | undefined,
): AsyncGenerator<InferenceEvent, void, void> {
  for await (const event of events) {
    if (!parser || event.kind === "toolCall") yield event;
    else {
      const logprobs = event.kind === "text" ? event.logprobs : undefined;
      if (logprobs) yield { kind: "text", text: "", logprobs };
      for (const parsed of event.kind === "text" ? parser.push(event.text) : parser.end()) {
        if (parsed.kind === "text") yield parsed;
        else yield { kind: "toolCall", call: { function: { name: parsed.name, arguments: parsed.arguments } } };
      }
      if (event.kind === "done") yield event;
    }
  }
}
