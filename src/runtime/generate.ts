/**
 * Generate: one prompt, continued. Without `raw` it is rendered as a chat of one turn: the model's own system text and
 * messages come first, unless the caller brings the `context` of an earlier answer.
 */
import { AppError } from "../base/errors.ts";
import type { Asked } from "../runner/messages.ts";
import { fullName } from "../store/name.ts";
import { infer, type Phase } from "./infer.ts";
import { refuseImages, settingsOf, templateOf, thinkOf, type Loaded, type RuntimeParts } from "./lease.ts";
import { respond, unread, type Question } from "./respond.ts";
import type { GenerateRequest, InferenceEvent } from "./runtime.ts";
import type { KnownTemplate } from "./runner-process.ts";

export function runGenerate(parts: RuntimeParts, request: GenerateRequest): AsyncGenerator<InferenceEvent, void, void> {
  return infer(parts, {
    request,
    name: "generate",
    isEmpty: request.prompt === "" && !request.suffix && !request.images?.length,
    begin: (loaded) => begin(parts, loaded, request),
  });
}

async function begin(parts: RuntimeParts, loaded: Loaded, request: GenerateRequest): Promise<Phase> {
  refuseImages(loaded, request.images, request.model);
  const { raw, prompt, context = [], suffix, template } = request;
  const settings = settingsOf(loaded.model, request);
  const question = (asked: Asked): Question => ({ asked, settings, wantsContext: !raw });
  if (raw) return unread(loaded, question({ kind: "text", text: prompt, context }));
  const choice = template === undefined ? templateOf(loaded.model) : { go: template, prefersGo: true };
  const known = await loaded.lease.runner.template(choice);
  const think = thinkOf(known.facts, request.think);
  const asked = question(askedOf(parts, loaded, { request, known }));
  return suffix ? unread(loaded, asked) : respond(loaded, asked, { facts: known.facts, think, tools: [] });
}

/** What the model reads: a question, or two texts with a gap between them. */
function askedOf(
  parts: RuntimeParts,
  { model, lease }: Loaded,
  { request, known: { facts, number } }: { request: GenerateRequest; known: KnownTemplate },
): Asked {
  const { prompt, suffix, context = [] } = request;
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
    history: context.length > 0 ? [] : model.messages,
    ...(think === undefined ? {} : { think }),
    ...(system ? { system } : {}),
    ...(suffix ? { suffix } : {}),
  };
}
