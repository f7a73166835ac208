/**
 * Generate: continues one prompt. Without `raw` it becomes a chat of one turn: the model's own system text and messages
 * come first, unless the caller brings the `context` of an earlier answer.
 */
import { AppError } from "../../base/index.ts";
import type { PromptInput } from "../../engine/index.ts";
import { fullName } from "../../library/portable.ts";
import type { TemplateFacts } from "../../engine/text/index.ts";
import { infer, type GenerationPass } from "./infer.ts";
import { onRunner, refuseEmbedder, settingsOf, templateOf, thinkOf, type Loaded, type RuntimeParts } from "./lease.ts";
import { refuseMedia } from "./media.ts";
import type { GenerateRequest, InferenceEvent } from "../requests/runtime.ts";
import type { KnownTemplate } from "../processes/runner-client.ts";

export function runGenerate(parts: RuntimeParts, request: GenerateRequest): AsyncGenerator<InferenceEvent, void, void> {
  return infer(parts, {
    request,
    name: "generate",
    isEmpty:
      request.prompt === "" &&
      !request.suffix &&
      !request.fill &&
      !request.images?.length &&
      !(request.raw && request.context),
    isForced: request.force ?? false,
    begin: (loaded) => begin(parts, loaded, request),
  });
}

/** The prompt of an answer. Throws the errors that the answer itself would throw before it begins. */
export async function renderQuestion(parts: RuntimeParts, request: GenerateRequest): Promise<string> {
  return onRunner(parts, request, async (loaded) => {
    refuseEmbedder(loaded, { model: request.model, task: "generate" });
    const { asked } = await readingOf(parts, loaded, request);
    return loaded.lease.runner.render(asked, settingsOf(loaded, request));
  });
}

async function begin(parts: RuntimeParts, loaded: Loaded, request: GenerateRequest): Promise<GenerationPass> {
  const { asked, facts } = await readingOf(parts, loaded, request);
  const question = { asked, settings: settingsOf(loaded, request), wantsContext: !request.raw };
  const { respond, passThrough } = await import("./respond.ts");
  if (!facts || request.suffix || request.fill) return passThrough(loaded, question);
  const callGrammars = await parts.callGrammars();
  return respond(loaded, question, { facts, think: thinkOf(facts, request.think), tools: [], callGrammars });
}

/** The model's input, and facts on the template that renders it, if one does. */
async function readingOf(
  parts: RuntimeParts,
  loaded: Loaded,
  request: GenerateRequest,
): Promise<{ readonly asked: PromptInput; readonly facts?: TemplateFacts }> {
  refuseMedia(request.images, { model: request.model, info: loaded.lease.runner.info });
  const { raw, prompt, images, context = [], template } = request;
  if (raw) return { asked: { kind: "text", text: prompt, context, ...(images ? { images } : {}) } };
  const choice = template === undefined ? templateOf(loaded.model) : { go: template, prefersGo: true };
  const known = await loaded.lease.runner.template(choice);
  return { asked: askedOf(parts, loaded, { request, known }), facts: known.facts };
}

/** The input: a question, or a prefix and a suffix to fill between. */
function askedOf(
  parts: RuntimeParts,
  { model, lease }: Loaded,
  { request, known: { facts, number } }: { request: GenerateRequest; known: KnownTemplate },
): PromptInput {
  const { prompt, suffix, fill, images, context = [] } = request;
  if (fill) {
    if (!lease.runner.info.canFill)
      throw new AppError("bad_request", `${fullName(model.name)} does not support insert`);
    return { kind: "gap", before: prompt, after: suffix ?? "", ...(fill.length > 0 ? { files: fill } : {}) };
  }
  if (suffix && images?.length) throw new AppError("bad_request", "suffix: expected no images together with it");
  if (suffix && !facts.capabilities.insert) {
    if (request.template === undefined && lease.runner.info.canFill)
      return { kind: "gap", before: prompt, after: suffix };
    throw new AppError("bad_request", `${fullName(model.name)} does not support insert`);
  }
  const system = request.system ?? model.system;
  const think = thinkOf(facts, request.think);
  return {
    kind: "question",
    template: number,
    nowMs: parts.now().getTime(),
    prompt,
    context,
    ...(images ? { images } : {}),
    history: context.length > 0 ? [] : model.messages,
    ...(think === undefined ? {} : { think }),
    ...(system ? { system } : {}),
    ...(suffix ? { suffix } : {}),
  };
}
