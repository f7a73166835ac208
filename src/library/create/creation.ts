/** The request, environment and progress of a model's creation. */
import type { ModelFolder } from "../convert/folder.ts";
import type { CheckModel, Runs } from "./architecture.ts";
import type { ClaimParts } from "../store/claims.ts";
import type { ConfigExtras } from "../store/image.ts";
import type { Manifest } from "../store/manifest.ts";
import type { ModelName } from "../store/name.ts";
import type { FileTypeName } from "./quantize-mix.ts";
import type { InTurn } from "./quantize-weights.ts";
import type { Source } from "./sources.ts";
import type { StoredMessage } from "../store/store.ts";

export interface Progress {
  readonly status: string;
  /** Digest of the blob in progress; then `total` is set too and, after the first bytes, `completed`. */
  readonly digest?: string;
  readonly total?: number;
  readonly completed?: number;
}

export interface CreateRequest {
  /** The form of the request, a Modelfile or fields; progress messages differ. */
  readonly shape: "modelfile" | "fields";
  readonly name: ModelName;
  /** The base model, as the client wrote it. */
  readonly base?: string;
  readonly sources: readonly Source[];
  /** Safetensors, to be converted to a source, or files of another format, to be described by one. */
  readonly folder?: ModelFolder;
  /** A GGUF, or safetensors to be converted to one, that is applied to the model. */
  readonly adapter?: Source | ModelFolder;
  /** A GGUF that is the draft model, or the name of a model that has it. */
  readonly draft?: Source | string;
  /** The draft's quantization; absent: unchanged. */
  readonly draftQuantize?: FileTypeName;
  /** Empty texts change nothing. */
  readonly template?: string;
  readonly system?: string;
  readonly licenses: readonly string[];
  /** Override the base's. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** If there are any, they replace the base's. */
  readonly messages: readonly StoredMessage[];
  /** Fields of the configuration that override the files'. */
  readonly extras: ConfigExtras;
  /** Added to the base's. */
  readonly capabilities: readonly string[];
  /** The weights' quantization; absent: unchanged. */
  readonly quantize?: FileTypeName;
}

/** A manifest, and its small blobs, which are written together with it. */
interface Publication {
  readonly manifest: Manifest;
  readonly contents: readonly Uint8Array[];
}

/** Publishes a model. Throws `bad_file` if a blob is missing. */
export type Publish = (name: ModelName, publication: Publication) => Promise<void>;

/** The signal and the parts that the work uses; once the signal is aborted, nothing more is written. */
export interface CreateParts extends ClaimParts {
  readonly root: string;
  /** Further stores that may hold the base. */
  readonly others: readonly string[];
  /** Returns whether an architecture can run here; absent: all can. */
  readonly runs?: Runs | undefined;
  readonly checkModel?: CheckModel | undefined;
  readonly publish: Publish;
  /** Runs one conversion or quantization at a time, because each uses all cores. */
  readonly inTurn: InTurn;
  readonly signal?: AbortSignal | undefined;
}
