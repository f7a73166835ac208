/** Finds and leases a loaded model for a request, and checks that it supports the request. */
import { AppError, backendTraits, nowNs } from "../../base/index.ts";
import {
  type AdapterChoice,
  type AnswerSettings,
  type Options,
  rendererOf,
  SAMPLING_DEFAULTS,
  type SamplingOptions,
  type TemplateChoice,
} from "../../engine/index.ts";
import { checkRunsHere, hasOwnTemplate, type ModelRef, type Store } from "../../library/portable.ts";
import type { TemplateFacts } from "../../engine/text/index.ts";
import { choicesOf, type Adapters } from "./adapters.ts";
import type { CallGrammars } from "./call-grammars.ts";
import type { PoolWeights } from "../processes/load-message.ts";
import type { Lease, Pool } from "../processes/pool.ts";
import type { InferenceRequest, NamedModel, Think } from "../requests/runtime.ts";

/** Keeps models in memory: processes on a server, Workers in a page. */
interface Runners extends Pick<Pool, "unload"> {
  acquire(...asked: Parameters<Pool["acquire"]>): Promise<Lease>;
}

export interface RuntimeParts {
  readonly pool: Runners;
  readonly store: Pick<Store, "resolve" | "check">;
  readonly now: () => Date;
  readonly callGrammars: () => Promise<CallGrammars>;
  /** Absent: requests choose no adapters, and models do not share a runner with their base. */
  readonly adapters?: Adapters;
}

interface LeaseRequest extends NamedModel {
  readonly options: Options;
  readonly lora?: InferenceRequest["lora"];
  readonly keepAliveMs?: number;
  readonly signal: AbortSignal;
}

/** A loaded model for one request, and the duration of the load. */
export interface Loaded {
  readonly lease: Lease;
  readonly model: ModelRef;
  /** The adapters that the request has chosen; undefined: the model's own. */
  readonly adapters: readonly AdapterChoice[] | undefined;
  readonly startedNs: number;
  readonly loadNs: number;
}

/** The model that a request names. Throws `not_found` and the store's errors. */
export async function modelOf({ store }: RuntimeParts, { model, ref }: NamedModel): Promise<ModelRef> {
  const found = ref ?? (await store.resolve(model));
  if (!found) throw new AppError("not_found", `model '${model}' not found`);
  return found;
}

/** Loads the model if needed; the caller releases the lease. */
export async function lease(parts: RuntimeParts, model: ModelRef, request: LeaseRequest): Promise<Loaded> {
  checkRunsHere(model);
  const startedNs = nowNs();
  const adapters = await choicesOf(parts.adapters, model, request.lora);
  const leased = await parts.pool.acquire(
    {
      name: model.displayName,
      digest: model.digest,
      ...weightsOf(model),
      weightBytes: model.weightBytes,
      template: templateOf(model),
      check: () => parts.store.check(model),
      chosen: (adapters ?? []).flatMap(({ path, scale }) => (scale === 0 ? [] : path)),
      ...(parts.adapters && { offers: async () => parts.adapters!.over(model) }),
    },
    {
      options: { ...model.parameters, ...request.options },
      keepAliveMs: request.keepAliveMs,
      signal: request.signal,
    },
  );
  return { lease: leased, model, adapters, startedNs, loadNs: nowNs() - startedNs };
}

/**
 * A runner's answer to a request; repeats the request once on a fresh runner if the first one ended before it received
 * it.
 */
export async function onRunner<T>(
  parts: RuntimeParts,
  request: LeaseRequest,
  work: (loaded: Loaded) => Promise<T>,
): Promise<T> {
  const model = await modelOf(parts, request);
  for (let isLast = false; ; isLast = true) {
    const loaded = await lease(parts, model, request);
    try {
      return await work(loaded);
    } catch (error) {
      if (isLast || !loaded.lease.wasSilent()) throw error;
    } finally {
      loaded.lease.release();
    }
    await loaded.lease.ended;
  }
}

/** The files that a runner loads. */
export const weightsOf = ({ paths }: Pick<ModelRef, "paths">): PoolWeights => ({
  path: paths.model,
  adapters: paths.adapters,
  projector: paths.projectors[0],
  draft: paths.drafts[0],
  files: paths.files,
});

/** The model's Go template, and true if it is used instead of the one in the file. */
export function templateOf(model: ModelRef): TemplateChoice {
  const { renderer, parser, model_type: size } = model.config;
  return {
    go: model.template,
    prefersGo: hasOwnTemplate(model),
    ...(renderer ? { renderer: rendererOf(renderer, { name: model.displayName, size }) } : {}),
    ...(parser ? { parser } : {}),
  };
}

/** Sampling options: the request's override the Modelfile's, which override the file's, which override the defaults. */
export function settingsOf(loaded: Loaded, request: InferenceRequest): AnswerSettings {
  const {
    model,
    lease: { runner },
  } = loaded;
  const { options, format, grammar, logprobs, endLogprobs, promptLogprobs, reportsProgress } = request;
  const { shift = true, truncate = true } = request;
  return {
    options: samplingOptions({ ...runner.info.parameters, ...model.parameters }, options),
    shift,
    truncate,
    ...(format ? { format } : {}),
    ...(grammar ? { grammar } : {}),
    ...(logprobs === undefined ? {} : { logprobs }),
    ...(endLogprobs ? { endLogprobs } : {}),
    ...(promptLogprobs === undefined ? {} : { promptLogprobs }),
    ...(reportsProgress ? { reportsProgress } : {}),
    ...adaptersOf(loaded),
  };
}

/**
 * The adapters of a request whose runner lets requests choose them: its own list, or the model's. Throws `unsupported`
 * if the request has a list that the runner cannot follow.
 */
export function adaptersOf({
  model: { paths },
  lease: { runner },
  adapters: given,
}: Loaded): Pick<AnswerSettings, "adapters"> {
  const { adapters: offered, backend } = runner.info;
  const own = scaledPaths(paths.adapters);
  const wanted = given ?? own;
  const [missing] = wanted.filter(({ path, scale }) => scale !== 0 && !offered?.includes(path));
  if (!offered && isSame(wanted, own)) return {};
  if (offered && !missing) return wanted.length > 0 ? { adapters: wanted } : {};
  const why = backendTraits(backend).adaptersByRow
    ? `it changes weights that are shared by all rows of a step, or does not fit the model or the GPU`
    : `the ${backend} backend applies the same adapters to all requests`;
  const which = missing ? `adapter '${nameOf(missing.path)}'` : "adapters";
  throw new AppError("unsupported", `${which}: a request cannot choose it: ${why}`);
}

const nameOf = (path: string): string => path.slice(Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\")) + 1);

/** A file that is listed several times applies as many times. */
function scaledPaths(paths: readonly string[]): AdapterChoice[] {
  return [...Map.groupBy(paths, (path) => path)].map(([path, { length: scale }]) => ({ path, scale }));
}

function isSame(a: readonly AdapterChoice[], b: readonly AdapterChoice[]): boolean {
  const keyOf = (choices: readonly AdapterChoice[]): string =>
    JSON.stringify(
      choices
        .filter(({ scale }) => scale !== 0)
        .map(({ path, scale }) => [path, scale])
        .sort(),
    );
  return keyOf(a) === keyOf(b);
}

function samplingOptions(parameters: Options, options: Options): SamplingOptions {
  const merged = { ...SAMPLING_DEFAULTS, ...parameters, ...options };
  const known = Object.keys(SAMPLING_DEFAULTS).map((key) => [key, merged[key as keyof SamplingOptions]]);
  return Object.fromEntries(known) as SamplingOptions; // has every key of the defaults
}

/** Refuses to generate with an embedding model. */
export function refuseEmbedder({ lease: { runner } }: Loaded, { model, task }: { model: string; task: string }): void {
  if (runner.info.embedsOnly) throw new AppError("bad_request", `${JSON.stringify(model)} does not support ${task}`);
}

/** The template's `think` value: true for models that can think, unless the request sets it. */
export const thinkOf = ({ capabilities }: TemplateFacts, think: Think | undefined): Think | undefined =>
  think ?? (capabilities.thinking ? true : undefined);
