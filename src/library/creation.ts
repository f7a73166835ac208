/** What a creation is asked for, what it works with, and what it tells on the way. */
import type { ModelFolder } from "./convert/folder.ts";
import type { CheckModel, Runs } from "./architecture.ts";
import type { ClaimParts } from "./claims.ts";
import type { ConfigExtras } from "./image.ts";
import type { Manifest } from "./manifest.ts";
import type { ModelName } from "./name.ts";
import type { FileTypeName } from "./quantize-mix.ts";
import type { InTurn } from "./quantize-weights.ts";
import type { Source } from "./sources.ts";
import type { StoredMessage } from "./store.ts";

/** Progress for the client. */
export interface Progress {
  readonly status: string;
  /** Of the blob that is being moved; then also `total` and, once there are any, `completed` bytes. */
  readonly digest?: string;
  readonly total?: number;
  readonly completed?: number;
}

export interface CreateRequest {
  /** How the request was written: a Modelfile, or fields. They differ in their progress messages. */
  readonly shape: "modelfile" | "fields";
  readonly name: ModelName;
  /** The model to build upon, as the client wrote it. */
  readonly base?: string;
  readonly sources: readonly Source[];
  /** Safetensors, to be converted to one more source, or files of another format, to be described by one. */
  readonly folder?: ModelFolder;
  /** A GGUF, or safetensors to be converted to one, that is laid over the model. */
  readonly adapter?: Source | ModelFolder;
  /** A GGUF that drafts for the model, or the name of a model whose weights do. */
  readonly draft?: Source | string;
  /** What the draft is quantized to; absent: it stays as it is. */
  readonly draftQuantize?: FileTypeName;
  /** Texts that are empty change nothing. */
  readonly template?: string;
  readonly system?: string;
  readonly licenses: readonly string[];
  /** Laid over those of the base. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** Where there are any, they replace those of the base. */
  readonly messages: readonly StoredMessage[];
  /** Fields of the configuration that win over what the files say. */
  readonly extras: ConfigExtras;
  /** Added to those of the base. */
  readonly capabilities: readonly string[];
  /** What the weights are quantized to; absent: they stay as they are. */
  readonly quantize?: FileTypeName;
}

/** A manifest, and those of its blobs that are small enough to be at hand: they are written with it. */
interface Publication {
  readonly manifest: Manifest;
  readonly contents: readonly Uint8Array[];
}

/** Puts a model in place. Throws `bad_file` where one of its blobs is missing. */
export type Publish = (name: ModelName, publication: Publication) => Promise<void>;

/** Where the work is done, and until when: once the signal says so, nothing more is written. */
export interface CreateParts extends ClaimParts {
  readonly root: string;
  /** Stores that a base may lie in too. */
  readonly others: readonly string[];
  /** Whether an architecture can be run here; absent: whatever it is. */
  readonly runs?: Runs | undefined;
  readonly checkModel?: CheckModel | undefined;
  readonly publish: Publish;
  /** Runs one conversion or quantization after the other, for each takes what cores there are. */
  readonly inTurn: InTurn;
  readonly signal?: AbortSignal | undefined;
}
