/** Facts about a loaded model, for the server: what its file states, and what its sessions take. */
import type { Session } from "../program/backend.ts";
import type { Gguf } from "../formats/gguf/gguf.ts";
import { getNumber } from "../formats/gguf/keys.ts";
import { fileOptions, unusedSamplers } from "../text/sampling/file-options.ts";
import type { Options } from "../text/sampling/options.ts";
import type { LoadedDraft } from "./load-draft.ts";
import type { RankHead } from "./rank-head.ts";

export interface EngineInfo {
  readonly arch: string;
  readonly backend: string;
  readonly device: string;
  readonly ctxLen: number;
  /** Sequences that decode at once. */
  readonly slots: number;
  /** Context length of training, the maximum of `ctxLen`; Infinity if the file does not say. */
  readonly ctxLenTrained: number;
  /** Values per embedding. */
  readonly dim: number;
  /** The model only makes embeddings. */
  readonly embedsOnly: boolean;
  readonly bytes: { readonly weights: number; readonly kv: number; readonly scratch: number };
  readonly vramBytes: number;
  readonly gpuLayers: Session["gpuLayers"];
  /** Set if the weights do not fit in memory: the number of their bytes in memory. */
  readonly streamed?: { readonly memory: number };
  readonly placement?: Session["placement"];
  /** Kind of a reranker's scores; undefined: not a reranker. */
  readonly ranks: RankHead["kind"] | undefined;
  /** The model has markers for filling in the middle. */
  readonly canFill: boolean;
  /** Kinds of media that a prompt may contain. */
  readonly media: readonly MediaKind[];
  /** Set for a model that transcribes speech, with the codes of its languages; empty: English only. */
  readonly speech?: { readonly languages: readonly string[] };
  /** The reason why it takes no images although it has an image encoder. */
  readonly visionMissing?: string;
  /** The reason why it takes no recordings although it has an audio encoder. */
  readonly hearingMissing?: string;
  /** The reason why its draft model is unused. */
  readonly draftUnused?: string;
  /** Recommended sampling options of the file. */
  readonly parameters: Options;
  /** Keys of the file that recommend unsupported samplers. */
  readonly samplersUnused: readonly string[];
  /** Files of the adapters that requests may choose; undefined: the model's own apply to every request. */
  readonly adapters?: readonly string[];
}

type MediaKind = "image" | "audio";

/** Facts on the sessions of a model and its draft model. */
export function factsOf(
  { backend, device, bytes, vramBytes = 0, gpuLayers, placement, streamed }: Session,
  draft: LoadedDraft | undefined,
  others: readonly (Session | undefined)[],
): Pick<
  EngineInfo,
  "backend" | "device" | "bytes" | "vramBytes" | "gpuLayers" | "placement" | "streamed" | "draftUnused"
> {
  const drafting = [draft?.model?.session, ...others].flatMap((each) => each?.bytes ?? []);
  const all = (key: keyof Session["bytes"]): number => drafting.reduce((sum, each) => sum + each[key], bytes[key]);
  return {
    backend,
    device,
    bytes: { weights: all("weights"), kv: all("kv"), scratch: all("scratch") },
    vramBytes,
    gpuLayers,
    ...(placement && { placement }),
    ...(streamed && { streamed: { memory: streamed.memory } }),
    ...(draft?.unused === undefined ? {} : { draftUnused: draft.unused }),
  };
}

/** Facts that a file states. */
export const statedFacts = (
  gguf: Gguf,
  arch: string,
): Pick<EngineInfo, "ctxLenTrained" | "parameters" | "samplersUnused"> => ({
  ctxLenTrained: trainedCtxLen(gguf, arch),
  parameters: fileOptions(gguf.metadata),
  samplersUnused: unusedSamplers(gguf.metadata),
});

export const trainedCtxLen = ({ metadata }: Gguf, arch: string): number =>
  getNumber(metadata, `${arch}.context_length`, Infinity);
