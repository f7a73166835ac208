/**
 * Generate: one prompt, continued. Without `raw` it is rendered as a chat of one turn: the model's own system text and
 * messages come first, unless the caller brings the `context` of an earlier answer.
 */
import { AppError } from "../base/errors.ts";
import type { ModelEntry } from "../store/store.ts";
import { fullName } from "../store/name.ts";
import { capabilitiesOf, choosePrompt, renderGenerate } from "../template/prompt.ts";
import { answer, lease, refuseImages, templateOf, type Loaded, type RuntimeParts } from "./answer.ts";
import type { GenerateRequest, InferenceEvent } from "./runtime.ts";

export async function* runGenerate(
  parts: RuntimeParts,
  request: GenerateRequest,
): AsyncGenerator<InferenceEvent, void, void> {
  const model = await parts.load(request.model);
  const isEmpty = request.prompt === "" && !request.suffix && !request.images?.length;
  if (isEmpty && request.keepAliveMs === 0) {
    parts.pool.unload(model.paths.model);
    yield { kind: "done", reason: "unload" };
    return;
  }
  refuseImages(request.images, request.model);
  const loaded = await lease(parts, model, request);
  try {
    if (isEmpty) {
      yield { kind: "done", reason: "load" };
      return;
    }
    yield* answer(loaded, {
      prompt: request.raw ? request.prompt : renderPrompt({ parts, loaded, model, request }),
      context: request.context ?? [],
      options: request.options,
      format: request.format,
      signal: request.signal,
      wantsContext: !request.raw,
      logprobs: request.logprobs,
      truncate: request.truncate,
      shift: request.shift,
    });
  } finally {
    loaded.lease.release();
  }
}

function renderPrompt(about: {
  parts: RuntimeParts;
  loaded: Loaded;
  model: ModelEntry;
  request: GenerateRequest;
}): string {
  const { parts, loaded, model, request } = about;
  const template = request.template === undefined ? templateOf(loaded) : choosePrompt({ go: request.template });
  if (request.suffix && !capabilitiesOf(template).insert) {
    throw new AppError("bad_request", `${fullName(model.name)} does not support insert`);
  }
  const system = request.system ?? model.system;
  return renderGenerate(template, {
    prompt: request.prompt,
    history: request.context?.length ? [] : model.messages,
    now: parts.now(),
    ...(system ? { system } : {}),
    ...(request.suffix ? { suffix: request.suffix } : {}),
  });
}
