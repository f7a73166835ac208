/**
 * Generate: one prompt, continued. Without `raw` it is rendered as a chat of one turn: the model's own system text and
 * messages come first, unless the caller brings the `context` of an earlier answer.
 */
import { AppError } from "../base/errors.ts";
import type { ModelRef } from "../store/store.ts";
import { fullName } from "../store/name.ts";
import { capabilitiesOf, choosePrompt, renderGenerate, type PromptTemplate } from "../template/prompt.ts";
import {
  answer,
  lease,
  modelOf,
  refuseEmbedder,
  refuseImages,
  templateOf,
  thinkOf,
  weightsOf,
  type Loaded,
  type Question,
  type RuntimeParts,
} from "./answer.ts";
import { respond } from "./respond.ts";
import type { GenerateRequest, InferenceEvent } from "./runtime.ts";

export async function* runGenerate(
  parts: RuntimeParts,
  request: GenerateRequest,
): AsyncGenerator<InferenceEvent, void, void> {
  const model = await modelOf(parts, request);
  const isEmpty = request.prompt === "" && !request.suffix && !request.images?.length;
  if (isEmpty && request.keepAliveMs === 0) {
    parts.pool.unload(weightsOf(model));
    yield { kind: "done", reason: "unload" };
    return;
  }
  refuseImages(request.images, request.model);
  const loaded = await lease(parts, model, request);
  try {
    refuseEmbedder(loaded, { model: request.model, task: "generate" });
    if (isEmpty) {
      yield { kind: "done", reason: "load" };
      return;
    }
    const question = {
      context: request.context ?? [],
      options: request.options,
      format: request.format,
      signal: request.signal,
      wantsContext: !request.raw,
      logprobs: request.logprobs,
      truncate: request.truncate,
      shift: request.shift,
    };
    if (request.raw) {
      yield* answer(loaded, { ...question, prompt: request.prompt });
      return;
    }
    const template = request.template === undefined ? templateOf(loaded) : choosePrompt({ go: request.template });
    const asked = { ...question, ...promptOf({ parts, loaded, template, model, request }) };
    const think = thinkOf(template, request.think);
    yield* request.suffix ? answer(loaded, asked) : respond(loaded, asked, { template, think, tools: [] });
  } finally {
    loaded.lease.release();
  }
}

/** What the model reads: text, or two texts with a gap between them. */
function promptOf(about: {
  parts: RuntimeParts;
  loaded: Loaded;
  template: PromptTemplate;
  model: ModelRef;
  request: GenerateRequest;
}): Pick<Question, "prompt" | "suffix"> {
  const { parts, loaded, template, model, request } = about;
  const { prompt, suffix } = request;
  if (suffix && !capabilitiesOf(template).insert) {
    if (request.template === undefined && loaded.lease.runner.info.canFill) return { prompt, suffix };
    throw new AppError("bad_request", `${fullName(model.name)} does not support insert`);
  }
  const system = request.system ?? model.system;
  const think = thinkOf(template, request.think);
  const text = renderGenerate(template, {
    prompt,
    history: request.context?.length ? [] : model.messages,
    now: parts.now(),
    ...(think === undefined ? {} : { think }),
    ...(system ? { system } : {}),
    ...(suffix ? { suffix } : {}),
  });
  return { prompt: text };
}
