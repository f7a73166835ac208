/**
 * What generate and chat have in common: lease a runner, send it a prompt, and turn what it says into events with true
 * statistics.
 */
import { quoteGo } from "../base/quote.ts";
import { AppError } from "../base/errors.ts";
import { SAMPLING_DEFAULTS, type Options, type SamplingOptions } from "../sampling/options.ts";
import { hasOwnTemplate, type ModelRef, type Store } from "../store/store.ts";
import { capabilitiesOf, choosePrompt, type PromptTemplate } from "../template/prompt.ts";
import type { Lease, Pool, PoolWeights } from "./pool.ts";
import type { RunnerProcess } from "./runner-process.ts";
import type { Format, InferenceEvent, NamedModel, Think } from "./runtime.ts";

export interface RuntimeParts {
  readonly pool: Pool;
  readonly store: Pick<Store, "resolve" | "check">;
  readonly now: () => Date;
  /** Parsed templates of the models in memory; they go when the runner does. */
  readonly templates: Templates;
}

/** By runner, then by Go source, which names that share weights need not share. */
type Templates = WeakMap<RunnerProcess, Map<string | undefined, PromptTemplate>>;

/** Sources that are kept for one runner. */
const TEMPLATES_MAX = 16;

interface LeaseRequest {
  readonly options: Options;
  readonly keepAliveMs?: number;
  readonly signal: AbortSignal;
}

/** A loaded model for one request, and how long it took to get. */
export interface Loaded {
  readonly lease: Lease;
  readonly model: ModelRef;
  readonly templates: Templates;
  readonly startedNs: number;
  readonly loadNs: number;
}

/** The model that a request names. Throws `not_found`, and what the store does. */
export async function modelOf({ store }: RuntimeParts, { model, ref }: NamedModel): Promise<ModelRef> {
  const found = ref ?? (await store.resolve(model));
  if (!found) throw new AppError("not_found", `model '${model}' not found`);
  return found;
}

/** Loads the model if need be; the caller releases the lease. */
export async function lease(parts: RuntimeParts, model: ModelRef, request: LeaseRequest): Promise<Loaded> {
  const startedNs = Bun.nanoseconds();
  const leased = await parts.pool.acquire(
    {
      name: model.displayName,
      digest: model.digest,
      ...weightsOf(model),
      weightBytes: model.weightBytes,
      check: () => parts.store.check(model),
    },
    {
      options: { ...model.parameters, ...request.options },
      keepAliveMs: request.keepAliveMs,
      signal: request.signal,
    },
  );
  return { lease: leased, model, templates: parts.templates, startedNs, loadNs: Bun.nanoseconds() - startedNs };
}

/** The files that a runner loads. */
export const weightsOf = ({ paths }: Pick<ModelRef, "paths">): PoolWeights => ({
  path: paths.model,
  adapters: paths.adapters,
});

export interface Question {
  readonly prompt: string;
  /** The text after the gap that the model fills in behind the prompt. */
  readonly suffix?: string | undefined;
  readonly context: readonly number[];
  readonly options: Options;
  readonly format: Format | undefined;
  readonly signal: AbortSignal;
  /** Whether `done` carries the ids of prompt and answer. */
  readonly wantsContext: boolean;
  /** Whether the prompt lacks messages that did not fit. */
  readonly truncated?: boolean;
  /** These three: as the request says. */
  readonly logprobs?: number | undefined;
  readonly truncate?: boolean | undefined;
  readonly shift?: boolean | undefined;
  /** Texts of control tokens that come out as text. */
  readonly visible?: readonly string[];
}

/** Runs a prompt to its end. The last event is `done`. */
export async function* answer(loaded: Loaded, question: Question): AsyncGenerator<InferenceEvent, void, void> {
  const { runner } = loaded.lease;
  const request = {
    prompt: question.prompt,
    context: question.context,
    options: samplingOptions(loaded.model.parameters, question.options),
    shift: question.shift ?? true,
    truncate: question.truncate ?? true,
    ...(question.suffix === undefined ? {} : { suffix: question.suffix }),
    ...(question.format ? { format: question.format } : {}),
    ...(question.visible ? { visible: question.visible } : {}),
    ...(question.logprobs === undefined ? {} : { logprobs: question.logprobs }),
  };
  for await (const event of runner.generate(request, question.signal)) {
    if (event.kind === "text") {
      yield { kind: "text", text: event.text, ...(event.logprobs ? { logprobs: event.logprobs } : {}) };
    } else {
      const { stopSequence } = event;
      yield {
        kind: "done",
        reason: event.reason,
        statistics: { ...event.statistics, loadNs: loaded.loadNs, totalNs: Bun.nanoseconds() - loaded.startedNs },
        ...(question.wantsContext ? { context: Array.from(event.tokens) } : {}),
        ...(event.truncated || question.truncated ? { truncated: true } : {}),
        ...(stopSequence === undefined ? {} : { stopSequence }),
      };
    }
  }
}

/** Request over model parameters over defaults. */
export function samplingOptions(parameters: Options, options: Options): SamplingOptions {
  const merged = { ...SAMPLING_DEFAULTS, ...parameters, ...options };
  const known = Object.keys(SAMPLING_DEFAULTS).map((key) => [key, merged[key as keyof SamplingOptions]]);
  return Object.fromEntries(known) as SamplingOptions; // every key of the defaults is there
}

/** The template that a loaded model's prompts go through: its Go TEMPLATE or its Jinja one. */
export function templateOf({ lease, model, templates }: Loaded): PromptTemplate {
  const { runner } = lease;
  const known = templates.get(runner) ?? new Map<string | undefined, PromptTemplate>();
  const prefersGo = hasOwnTemplate(model);
  const key = model.template && `${prefersGo ? "own" : "other"}: ${model.template}`;
  const found = known.get(key);
  if (found) return found;
  const { chatTemplate, bosText, eosText } = runner.info;
  const tokens = { bos: bosText, eos: eosText };
  const template = choosePrompt({ go: model.template, jinja: chatTemplate, tokens, prefersGo });
  if (known.size < TEMPLATES_MAX) templates.set(runner, known.set(key, template));
  return template;
}

/** Refuses to generate with a model that was made for embedding. */
export function refuseEmbedder({ lease: { runner } }: Loaded, { model, task }: { model: string; task: string }): void {
  if (runner.info.embedsOnly) throw new AppError("bad_request", `${quoteGo(model)} does not support ${task}`);
}

/** What a template is told of thinking: a model that can think does unless the request says otherwise. */
export const thinkOf = (template: PromptTemplate, think: Think | undefined): Think | undefined =>
  think ?? (capabilitiesOf(template).thinking ? true : undefined);

/** Refuses what only models with a vision projector can take. */
export function refuseImages(images: readonly unknown[] | undefined, model: string): void {
  if (images && images.length > 0) throw new AppError("bad_request", `"${model}" does not support images`);
}
