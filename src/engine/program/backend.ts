/**
 * The interface of backends: a backend loads a list of steps with their weights, and runs rows of tokens through it. It
 * knows nothing of text, sampling, scheduling or HTTP.
 */
import type { Gguf } from "../formats/gguf/gguf.ts";
import type { ByteSource, FilePlace } from "../formats/gguf/source.ts";
import type { KernelChoice, KvCacheType } from "../../base/index.ts";
import type { TopK, TopKLimits, TopKRequest } from "../text/sampling/top-k.ts";
import type { Checkpoints, Growth, KvBlocks } from "./kept-slots.ts";
import type { DiffusionTraits } from "./diffusion.ts";
import type { PlacedPart } from "./placement.ts";
import type { SpeechModel } from "./speech.ts";
import type { Buf, Step } from "./step.ts";
import type { TuningStore } from "./tuning-store.ts";

/** The source of weight bytes: the mapped GGUF. Nothing is copied. */
export interface WeightSource {
  /** Path of the file, for messages and cache keys. */
  readonly path: string;
  /** Paths of adapter files that contribute weights. */
  readonly adapters?: readonly string[];
  /** The packed bytes of a whole tensor; a view if the file is mapped. */
  read(tensorName: string): Uint8Array;
  /** A part of the bytes, for sources whose reads copy: see `readRange` in weight-range.ts. */
  readRange?(tensorName: string, start: number, length: number): Uint8Array;
  /** The file range of a tensor's bytes; undefined, or omitted: they are in no file. */
  place?(tensorName: string): FilePlace | undefined;
}

/** The sizes that backends plan with. */
interface ModelShape {
  readonly arch: string;
  readonly dim: number;
  readonly nLayers: number;
  readonly vocabSize: number;
}

/** Rows of an image, a recording or an encoded prompt, which a sequence attends to besides its own. */
export interface Memory {
  /** Equal ids mean equal rows. */
  readonly id: string;
  /** (n, dim), n up to `MemoryProgram.rows` */
  readonly rows: Float32Array;
}

/** Computes keys and values of a memory: from an `input` of its rows to `remember` steps. */
export interface MemoryProgram {
  readonly steps: readonly Step[];
  readonly rows: number;
}

/** The encoder of a model that reads a prompt as a memory. */
export interface PromptReader {
  /** Its final hidden states are the memory's rows. */
  readonly program: Program;
  /** The id of the token that begins an answer. */
  readonly start: number;
}

/** A model's steps, in order, with their weights. */
export interface Program {
  readonly shape: ModelShape;
  readonly steps: readonly Step[];
  /** The output of the last step; undefined for an encoder, which has no output vocabulary. */
  readonly logits: Buf | undefined;
  /** The final hidden states: a buffer that holds them for the wanted rows after the last step that writes it. */
  readonly states: Buf;
  readonly weights: WeightSource;
  /**
   * Up to this context length, layers that choose positions choose all of them (`choices.ts`); undefined: no layer
   * chooses.
   */
  readonly choosesAbove?: number;
  /** Paths of the adapters that rows may choose; undefined: none. */
  readonly adapters?: readonly string[];
  /** Computes the input of cross attention; undefined: the program has none. */
  readonly memory?: MemoryProgram;
  /** Reads prompts; undefined: the program continues them. */
  readonly reader?: PromptReader;
  /** Undefined: the model generates one token after another, or none. */
  readonly diffusion?: DiffusionTraits;
  /** Set for the decoder of a model that transcribes speech: it runs for recordings only. */
  readonly writesSpeech?: true;
}

export interface LoadOptions {
  /** Tokens per slot of the KV cache. */
  readonly ctxLen: number;
  /** Maximum number of sequences, in the cache and in one decoding run. */
  readonly slots: number;
  /** Float32 activations everywhere: slower, closest to the reference. */
  readonly precise: boolean;
  /**
   * The model is small (`small.ts`): uses float32 activations, weights and cache if that costs a backend little, and
   * makes a row's bits independent of the batch.
   */
  readonly small?: boolean | undefined;
  /** 0: the number of physical cores. */
  readonly threads: number;
  /** Folder for files that speed up later loads; undefined: none are kept. */
  readonly cacheDir: string | undefined;
  /** Stores the fastest kernels of a GPU; undefined: no search. */
  readonly tunings?: TuningStore | undefined;
  /** The GPU kernels to run; undefined: `auto`. */
  readonly gpuKernels?: KernelChoice | undefined;
  /** Level of the SIMD kernels; undefined: the machine's best. */
  readonly simdLevel?: string | undefined;
  /**
   * Format of the KV cache, if a backend has the choice; undefined: `f16`. Precise runs use float32, and so do small
   * models unless this is `q8_0`.
   */
  readonly kvType?: KvCacheType | undefined;
  /**
   * Set for a model with an image encoder: rows may be vectors, and at most `twoWayRows` neighbours see each other in
   * both directions. A backend may need it to accept such rows.
   */
  readonly images?: { readonly twoWayRows: number } | undefined;
  /** Steps that a GPU leaves to the CPU. */
  readonly hostSteps?: HostSteps | undefined;
  /** Aborts the load with `cancelled`, at the next piece of weights, and frees its memory. */
  readonly signal?: AbortSignal | undefined;
  /**
   * A session of this backend that stays open longer: weights that it holds, of the same file, are not copied again.
   */
  readonly beside?: HeldWeights | undefined;
  /** Work that the backend began earlier; a session may take it over. */
  readonly begun?: Begun | undefined;
  /** Called with 0…1 while loading. */
  readonly onProgress?: (fraction: number) => void;
}

/** Steps of a program that the CPU computes while a GPU computes the others: see `engine/backends/experts.ts`. */
export interface HostSteps {
  readonly steps: ReadonlySet<Step>;
  /** As `StepSession.run`. */
  run(step: Step, rows: StepRows): Float32Array;
}

/** Inputs of a step. */
export interface StepRows {
  /** (rows, dim): the buffers that the step reads, in the order of its description, concatenated per row. */
  readonly values: Float32Array;
  /** Each row gets the same bits as if it were the only one. */
  readonly drafted: boolean;
}

/** Single steps of a program, loaded to run one at a time. */
export interface StepSession extends Pick<Session, "backend" | "device" | "bytes"> {
  /**
   * Runs a step. Blocks the calling thread. Throws `runner` for a result that is NaN or infinite.
   * @returns its result, (rows, dim); the array is reused by the next run
   */
  run(step: Step, rows: StepRows): Float32Array;
  close(): void;
}

/** Work that a backend does while headers are read. */
export interface Begun {
  /** Announces a file of the model, once it is open. */
  opened(source: ByteSource): void;
  /** Ends work that no session has taken over. */
  end(): void;
}

/** Weights on a device that other sessions of the same file may use while the session that holds them is open. */
export interface HeldWeights {
  readonly path: string;
  has(tensor: string): boolean;
}

/** Options that determine the bytes of a token in the cache. */
export type KvOption = "precise" | "small" | "kvType";

/**
 * Tokens `first` … `end − 1` attend to each other in both directions, as the parts of an image do, or attend to `seen`
 * instead.
 */
export interface Span {
  readonly first: number;
  readonly end: number;
  /** For steps in which rows attend only to their span. */
  readonly seen?: { readonly first: number; readonly end: number };
}

/** An adapter that rows have chosen. */
export interface RowAdapter {
  /** Index in `Program.adapters`. */
  readonly adapter: number;
  /** Factor on its changes. */
  readonly scale: number;
}

/** Tokens of one sequence, to be appended to its KV cache. */
export interface Rows {
  /** KV slot, 0 … slots − 1. Each appears once in a batch. */
  readonly slot: number;
  /** Position of the first token = number of the slot's tokens in the cache. */
  readonly start: number;
  /** Ids; −1 for a row given as a vector. */
  readonly tokens: Int32Array;
  /** Rows for a program that begins with an `input` step, (tokens, dim); of `tokens` only the length matters. */
  readonly input?: Float32Array;
  /** Vectors in place of embeddings for the rows without an id, in order: (rows without an id, dim). */
  readonly vectors?: Float32Array;
  /** One position per token, or three (time, height, width): (tokens, 1 or 3). Default: start, start + 1 … */
  readonly positions?: Int32Array;
  /** Relative to the first token. */
  readonly spans?: readonly Span[];
  /** All of these rows attend to it; omitted: no memory. */
  readonly memory?: Memory | undefined;
  /** Adapters that change the weights for these rows, each at most once. Default: none. */
  readonly adapters?: readonly RowAdapter[];
  /** The rows whose logits are returned. */
  readonly logits: "none" | "last" | "all";
  /** For `all`: each row gets the same bits as if it were its sequence's only row in the run. */
  readonly drafted?: boolean;
}

/** As `Rows`, for final hidden states instead of logits. An encoder ignores the slot. */
export interface StateRows extends Omit<Rows, "logits"> {
  readonly states: "none" | "first" | "last" | "all";
}

/** As `Rows`, for which a part of the last row's logits may suffice. */
export interface TopKRows extends Rows {
  /** For `logits: "last"`: only these tokens of that row are wanted. */
  readonly request?: TopKRequest | undefined;
}

/** The result of a run of `TopKRuns`. */
export interface TopKResult {
  readonly logits: Float32Array;
  readonly topK: readonly TopK[];
}

export interface RunWithStates extends TopKResult {
  readonly states: Float32Array;
}

/** Selects candidates on the device, where the logits are. */
export interface TopKRuns {
  readonly limits: TopKLimits;
  /**
   * As `run` of the session. Returns `logits` of the wanted rows without a request and `topK` of the rows with one,
   * both in batch order. Throws `runner` if a logit is NaN or infinite, as `run` does.
   */
  run(batch: readonly TopKRows[]): Promise<TopKResult>;
}

/** Reads of weights that do not fit in memory, since the load. */
export interface StreamedCounts {
  /** Uses of an expert's weights that were in memory. */
  readonly hits: number;
  /** Uses for which the weights were read. */
  readonly misses: number;
  /** Bytes read. */
  readonly bytes: number;
}

/** A run in parts; other slots may be run in between. */
export interface SlicedRun {
  /**
   * Continues for about `budgetNs`; returns the result of `run` at the end, undefined before. Until then the slot's
   * states besides keys and values are undefined.
   */
  next(budgetNs: number): Float32Array | undefined | Promise<Float32Array | undefined>;
  /** The longest indivisible part so far. */
  readonly longestNs: number;
  /** Gives up an unfinished run; absent: there is nothing to free. */
  abandon?(): void;
}

/** Runs that are divided, so that other sequences need not wait for the whole run. */
export interface SlicedRuns {
  /** Maximum rows of a run. */
  readonly rowsMax: number;
  /** One at a time: the previous one must be finished or abandoned. The logits equal those from `run`. */
  start(rows: Rows): SlicedRun;
}

/**
 * A loaded model with its KV cache. Not reentrant: one `run` at a time. All members are own properties, so that a
 * session can be spread into another.
 */
export interface Session {
  readonly backend: string;
  /** Resolves when the session can no longer run: its device was lost, or hangs. Only a new process helps. */
  readonly lost?: Promise<Error>;
  /** Displayed device name, e.g. "CPU (2 threads)". */
  readonly device: string;
  readonly bytes: {
    /** Includes mapped weights; each tensor counts once. */
    readonly weights: number;
    readonly kv: number;
    readonly scratch: number;
  };
  /** Each run reads weights from the mapped file. */
  readonly readsFiles?: boolean;
  /** Bytes on a GPU; undefined: no GPU. The memory of a software adapter is the machine's own. */
  readonly vramBytes?: number;
  /** The devices with parts of the model, the last layers first; undefined: all layers are on `device`. */
  readonly placement?: readonly PlacedPart[];
  /** Layers on a GPU, the output counted as one, and how many have their experts on the CPU; undefined: no GPU. */
  readonly gpuLayers?: { readonly count: number; readonly all: number; readonly cpuExperts?: number };
  /**
   * Appends the rows of each sequence to its slot and returns the wanted logits, (wantedRows, vocabSize), in batch
   * order. The array is reused by the next run. Several sequences of one token each run as one pass.
   */
  run(batch: readonly Rows[]): Promise<Float32Array>;
  /** Undefined: the caller reads all logits. */
  readonly topK?: TopKRuns;
  /**
   * Like `topK.run`, but also returns the final hidden states of all wanted rows in batch order, (wantedRows, dim).
   * Absent: see `keepStates` in engine/batching.
   */
  readonly runWithStates?: (batch: readonly TopKRows[]) => Promise<RunWithStates>;
  /** Undefined: each session copies its weights, or uses a mapped file. */
  readonly held?: HeldWeights;
  /** Accepts `drafted` rows. For slots that continue only from checkpoints, see engine/batching/rollback.ts. */
  readonly verifies?: boolean;
  /**
   * As `run`, but returns the final hidden states of the wanted rows, (wantedRows, dim). An encoder reads each entry of
   * the batch as a whole sequence and keeps no state.
   * @param pause awaited regularly in a long run of an encoder that has parts: other sessions may run meanwhile
   */
  states(batch: readonly StateRows[], pause?: () => Promise<void>): Promise<Float32Array>;
  /**
   * Undefined: a slot continues from any length up to its own, by overwriting. Otherwise a run begins at 0, at the
   * slot's length, or at a restored checkpoint.
   */
  readonly checkpoints?: Checkpoints;
  /**
   * Context shift: drops `discard` tokens after the first `keep` of a slot that holds `length`, moves the rest down and
   * re-rotates their keys to positions keep … length − discard − 1. Recurrent states keep the effect of the dropped
   * tokens, as in llama.cpp (llama-memory-recurrent.cpp, seq_rm).
   */
  shift(slot: number, options: { keep: number; discard: number; length: number }): void;
  /**
   * Set if the weights do not fit in memory: experts are read when a router picks them, other weights in the order of
   * their use.
   */
  readonly streamed?: {
    /** Bytes of weights in memory. */
    readonly memory: number;
    counts(): StreamedCounts;
  };
  /** Undefined: runs cannot be divided. */
  readonly slices?: SlicedRuns;
  /** Undefined: keys and values cannot leave their slots. */
  readonly blocks?: KvBlocks;
  /** Undefined: slots have all their memory from the start, or never free it. */
  readonly growth?: Growth;
  /**
   * Copies the first `length` tokens' keys and values from one slot to another; for other states see `checkpoints`.
   * Throws `busy` without room.
   */
  copy(options: { from: number; to: number; length: number }): void | Promise<void>;
  close(): void;
}

/** Bytes of a sequence: per token, and constant. */
export interface SlotBytes {
  readonly perToken: number;
  readonly once: number;
  /** Tokens of all slots together that a device can address; default: no limit. */
  readonly tokensMax?: number;
  /** Slots whose memories a device can address; default: no limit. */
  readonly slotsMax?: number;
}

export interface Backend {
  readonly name: string;
  /** Begins a load while the model's headers are read; absent: there is nothing to begin. */
  begin?(options: Pick<LoadOptions, "threads">): Begun;
  /** The program of a file that is not a list of steps; absent: `engine/architectures` makes it. */
  program?(gguf: Gguf): Program;
  /**
   * The ops of a program, and variants of ops, for which there are no kernels; absent: there are kernels for all. A
   * load refuses such programs.
   */
  missing?(program: Program): readonly string[];
  /** Bytes of a slot; absent: everything is float32. */
  slotBytes?(program: Pick<Program, "steps">, options: Pick<LoadOptions, KvOption>): SlotBytes | Promise<SlotBytes>;
  load(program: Program, options: LoadOptions): Promise<Session>;
  /** The model that the backend was opened for, if it transcribes speech. */
  readonly speech?: SpeechModel;
  /**
   * Loads some steps of a program that work row by row and read the same number of values. Throws `unsupported` if
   * there are no kernels for them. Absent: single steps are not supported.
   */
  loadSteps?(program: Program, steps: readonly Step[], options: LoadOptions): Promise<StepSession>;
  /**
   * Bytes of device memory for a load: weights, KV cache, scratch. Throws the load's error for a program that no memory
   * is enough for. Undefined if the device uses the machine's memory.
   */
  neededBytes?(program: Program, options: LoadOptions): Promise<number>;
}
