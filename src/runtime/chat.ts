/** Chat: messages rendered by the model's template, the oldest dropped until they fit the context. */
import { answerRoom } from "../engine/context.ts";
import {
  lease,
  modelOf,
  refuseEmbedder,
  refuseImages,
  samplingOptions,
  weightsOf,
  type Loaded,
  type RuntimeParts,
} from "./answer.ts";
import { conversationOf, type Conversation } from "./conversation.ts";
import { fitMessages, type Fitted } from "./fit.ts";
import { requiredTools } from "./forced-call.ts";
import { respond } from "./respond.ts";
import type { RunnerProcess } from "./runner-process.ts";
import type { ChatRequest, InferenceEvent } from "./runtime.ts";

export async function* runChat(parts: RuntimeParts, request: ChatRequest): AsyncGenerator<InferenceEvent, void, void> {
  const model = await modelOf(parts, request);
  if (request.messages.length === 0 && request.keepAliveMs === 0) {
    parts.pool.unload(weightsOf(model));
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
    const conversation = conversationOf(parts, loaded, request);
    const question = {
      ...(await fittingPrompt(loaded, conversation, request)),
      context: [],
      options: request.options,
      format: request.format,
      signal: request.signal,
      wantsContext: false,
      logprobs: request.logprobs,
      truncate: request.truncate,
      shift: request.shift,
    };
    yield* respond(loaded, question, { ...conversation, required });
  } finally {
    loaded.lease.release();
  }
}

/** The prompt of all messages, or of as many as fit where the request lets the oldest go. */
async function fittingPrompt(
  { lease: { runner }, model }: Loaded,
  { messages, render }: Conversation,
  { truncate = true, options }: ChatRequest,
): Promise<Fitted> {
  if (!truncate) return { prompt: render(messages), truncated: false };
  const { num_predict: numPredict } = samplingOptions(model.parameters, options);
  const { ctxLen } = runner.info;
  return fitMessages(messages, {
    render,
    fits: (prompt, { isWhole }) =>
      isShorter(runner, prompt, isWhole ? ctxLen : ctxLen - answerRoom({ ctxLen, numPredict }) + 1),
  });
}

/** Whether a prompt has fewer tokens; one token is at least one byte, so a short prompt need not be counted. */
const isShorter = async (runner: RunnerProcess, prompt: string, tokens: number): Promise<boolean> =>
  prompt.length * 3 < tokens || (await runner.countTokens(prompt)) < tokens;
