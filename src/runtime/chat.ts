/** Chat: messages rendered by the model's template, the oldest dropped until they fit the context. */
import { AppError } from "../base/errors.ts";
import type { ModelEntry } from "../store/store.ts";
import { fullName } from "../store/name.ts";
import { capabilitiesOf, renderChat, type PromptTemplate } from "../template/prompt.ts";
import { lease, refuseEmbedder, refuseImages, templateOf, thinkOf, type Loaded, type RuntimeParts } from "./answer.ts";
import { fitMessages, type Fitted } from "./fit.ts";
import { requiredTools } from "./forced-call.ts";
import { respond } from "./respond.ts";
import type { RunnerProcess } from "./runner-process.ts";
import type { ChatRequest, InferenceEvent, Message, Think } from "./runtime.ts";

export async function* runChat(parts: RuntimeParts, request: ChatRequest): AsyncGenerator<InferenceEvent, void, void> {
  const model = await parts.load(request.model);
  if (request.messages.length === 0 && request.keepAliveMs === 0) {
    parts.pool.unload(model.paths.model);
    yield { kind: "done", reason: "unload" };
    return;
  }
  for (const message of request.messages) refuseImages(message.images, request.model);
  const required = requiredTools(request);
  const loaded = await lease(parts, model, request);
  try {
    refuseEmbedder(loaded, { model: request.model, task: "chat" });
    if (request.messages.length === 0) {
      yield { kind: "done", reason: "load" };
      return;
    }
    const template = templateOf(loaded);
    const tools = request.toolChoice === "none" ? [] : (request.tools ?? []);
    if (tools.length > 0 && !capabilitiesOf(template).tools) {
      throw new AppError("bad_request", `${fullName(model.name)} does not support tools`);
    }
    const think = thinkOf(template, request.think);
    const question = {
      ...(await fittingPrompt({ parts, loaded, template, request: { ...request, tools, think } })),
      context: [],
      options: request.options,
      format: request.format,
      signal: request.signal,
      wantsContext: false,
      logprobs: request.logprobs,
      truncate: request.truncate,
      shift: request.shift,
    };
    yield* respond(loaded, question, { template, think, tools, required });
  } finally {
    loaded.lease.release();
  }
}

/** The prompt of all messages, or of as many as fit where the request lets the oldest go. */
async function fittingPrompt(about: {
  parts: RuntimeParts;
  loaded: Loaded;
  template: PromptTemplate;
  request: Pick<ChatRequest, "messages" | "tools" | "truncate"> & { readonly think: Think | undefined };
}): Promise<Fitted> {
  const { parts, loaded, template, request } = about;
  const { runner } = loaded.lease;
  const { tools = [], think } = request;
  const given = { ...(tools.length > 0 ? { tools } : {}), ...(think === undefined ? {} : { think }) };
  const render = (messages: readonly Message[]): string =>
    renderChat(template, { messages, now: parts.now(), ...given });
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
