/**
 * What a backend is: something that can load a list of steps with their weights, and run rows of tokens through it. It
 * knows nothing of text, sampling, scheduling or HTTP.
 */
import type { Gguf } from "../formats/gguf/gguf.ts";
import type { ByteSource } from "../formats/gguf/source.ts";
import type { KernelChoice, KvCacheType } from "../../base/index.ts";
import type { Offer, OfferLimits, OfferWish } from "../text/sampling/offer.ts";
import type { Buf, Step } from "./step.ts";

/** Where weight bytes come from: the mapped GGUF. Nothing is copied. */
export interface WeightSource {
  /** Path of the file, for messages and for cache keys. */
  readonly path: string;
  /** Paths of adapter files, where some of the weights come from such. */
  readonly adapters?: readonly string[];
  /** The packed bytes of a whole tensor; nothing is copied where the file is mapped. */
  read(tensorName: string): Uint8Array;
  /** Some of them, for sources of which a view is a copy: see `readRange` in weight-range.ts. */
  readRange?(tensorName: string, start: number, length: number): Uint8Array;
}

/** Remembers what a search for the fastest kernels of a device found. */
export interface TuningStore {
  /** The value stored under that key, of any shape: other programs may write there. Undefined if none. */
  read(key: string): Promise<unknown>;
  write(key: string, tunings: { readonly exact: string; readonly fast: string }): Promise<void>;
}

/** The sizes a backend plans with. */
interface ModelShape {
  readonly arch: string;
  readonly dim: number;
  readonly nLayers: number;
  readonly vocabSize: number;
}

/** A model ready to be planned: its steps, in order, and their weights. */
export interface Program {
  readonly shape: ModelShape;
  readonly steps: readonly Step[];
  /** What the last step writes; undefined for an encoder, which has no output vocabulary. */
  readonly logits: Buf | undefined;
  /** The final hidden states of the wanted rows: what this buffer holds when the last step that writes it is done. */
  readonly states: Buf;
  readonly weights: WeightSource;
}

export interface LoadOptions {
  /** KV cache length of each slot, in tokens. */
  readonly ctxLen: number;
  /** Sequences that can be held, and decoded in one run, at once. */
  readonly slots: number;
  /** Float32 activations everywhere: slower, closest to the reference. */
  readonly precise: boolean;
  /**
   * The model is small (`small.ts`): float32 activations, weights and cache, where that costs a backend little and
   * leaves rows their bits in company.
   */
  readonly small?: boolean | undefined;
  /** 0: as many as there are physical cores. */
  readonly threads: number;
  /** Folder for files that make a second load faster; undefined: keep none. */
  readonly cacheDir: string | undefined;
  /** Remembers the fastest kernels of a GPU; undefined: none are searched. */
  readonly tunings?: TuningStore | undefined;
  /** Which kernels a GPU runs; undefined: `auto`. */
  readonly gpuKernels?: KernelChoice | undefined;
  /** Level of the SIMD kernels; undefined: the best of this machine. */
  readonly simdLevel?: string | undefined;
  /**
   * How keys and values are kept, where a backend has the choice; undefined: `f16`. Precise runs keep float32, small
   * models too where this is not `q8_0`.
   */
  readonly kvType?: KvCacheType | undefined;
  /** Ends the load with `cancelled`, at the next piece of weights, and frees what it took. */
  readonly signal?: AbortSignal | undefined;
  /** What the backend began before; a session may take it over. */
  readonly begun?: Begun | undefined;
  /** Called with 0…1 while loading. */
  readonly onProgress?: (fraction: number) => void;
}

/** What a backend does beside the reading of headers. */
export interface Begun {
  /** Tells of a file of the model, once it is open. */
  opened(source: ByteSource): void;
  /** Ends what no session has taken over. */
  end(): void;
}

/** Options that decide what a token takes in the cache. */
export type KvOption = "precise" | "small" | "kvType";

/** Tokens `first` … `end − 1` see each other both ways, as the parts of an image do, or see those `seen` instead. */
export interface Span {
  readonly first: number;
  readonly end: number;
  /** For steps in which rows see their span only. */
  readonly seen?: { readonly first: number; readonly end: number };
}

/** Some tokens of one sequence, to be appended to its KV cache. */
export interface Rows {
  /** KV slot, 0 … slots − 1. Each appears once in a batch. */
  readonly slot: number;
  /** Position of the first token = tokens of this slot that are in the cache already. */
  readonly start: number;
  /** Ids; −1 for a row that is given as a vector. */
  readonly tokens: Int32Array;
  /** Of each token, for a program that begins with an `input` step: (tokens, dim). Its tokens are counted only. */
  readonly input?: Float32Array;
  /** What the rows without an id begin with instead of an embedding, in order: (rows without an id, dim). */
  readonly vectors?: Float32Array;
  /** Of each token one position, or three (time, height, width): (tokens, 1 or 3). Left out: start, start + 1 … */
  readonly positions?: Int32Array;
  /** Counted from 0. */
  readonly spans?: readonly Span[];
  /** Which rows' logits are wanted. */
  readonly logits: "none" | "last" | "all";
  /** Goes with `all`: each row gets the bits that it would have as the only one of its sequence in a run. */
  readonly drafted?: boolean;
}

/** As `Rows`, where final hidden states are wanted instead of logits. The slot has no meaning for an encoder. */
export interface StateRows extends Omit<Rows, "logits"> {
  readonly states: "none" | "first" | "last" | "all";
}

/** As `Rows`, where less than the logits of the last row may do. */
export interface OfferRows extends Rows {
  /** Goes with `logits: "last"`: only these tokens of that row are wanted. */
  readonly wish?: OfferWish | undefined;
}

/** Candidates chosen where the logits are. */
export interface OfferRuns {
  readonly limits: OfferLimits;
  /**
   * As `run` of the session. `logits` are those of the wanted rows without a wish, `offers` those of the rows with one,
   * both in batch order. Throws `runner` where a logit is NaN or infinite, as `run` does.
   */
  run(batch: readonly OfferRows[]): Promise<{ readonly logits: Float32Array; readonly offers: readonly Offer[] }>;
}

/** What a slot holds beside keys and values, put aside. Belongs to the session that made it. */
export interface Checkpoint {
  /** Tokens of the slot when it was taken. */
  readonly length: number;
  readonly bytes: number;
}

/** Slots that go on only from where they stand: some step keeps what the last row left. */
export interface Checkpoints {
  /**
   * Puts aside what a slot that holds `length` tokens keeps beside keys and values.
   * @param into an earlier one that nobody wants any more, whose memory may be used again
   */
  save(slot: number, length: number, into?: Checkpoint): Checkpoint;
  /**
   * Takes a slot back to a checkpoint, of itself or of another slot. The keys and values of the tokens before it must
   * be those that they were: still there, or copied.
   */
  restore(slot: number, checkpoint: Checkpoint): void;
  /**
   * Where a slot stands that was to hold `length` tokens; it is taken back where more were evaluated, that were
   * guessed. Left out: where it was to.
   */
  standing?(slot: number, length: number): number;
}

/** Checkpoints as bytes. */
export interface PackedCheckpoints {
  pack(checkpoint: Checkpoint): Uint8Array;
  /** Undefined where the bytes are not as many as they must be. */
  unpack(length: number, bytes: Uint8Array): Checkpoint | undefined;
}

/** Keys and values of some positions of a slot as bytes, which any slot takes back at the same positions. */
export interface KvBlocks {
  /** A block begins at a multiple of so many positions and has as many at most. */
  readonly length: number;
  /** What the bytes depend on beside the weights: backend, kernels, how keys and values lie. */
  readonly layout: string;
  /** Of slots that go on only from checkpoints. */
  readonly checkpoints: PackedCheckpoints | undefined;
  /** Bytes of a block of so many positions. */
  bytesOf(count: number): number;
  /** Copies `count` positions from `first` on. */
  read(slot: number, first: number, count: number): Uint8Array;
  /** Copies them to where they were, in that slot or another; positions behind them may be written too. */
  write(slot: number, block: { readonly first: number; readonly count: number; readonly bytes: Uint8Array }): void;
}

/** What slots take grows with what they hold. */
export interface Growth {
  /** Bytes of a token. */
  readonly tokenBytes: number;
  /** Gives the memory of a slot back, and with it what it held. */
  release(slot: number): void;
}

/** A run in parts, between which other slots may be run. */
export interface SlicedRun {
  /**
   * Goes on for about so many nanoseconds; as `run` once it is done, undefined before. What the slot keeps beside keys
   * and values is unknown until then.
   */
  next(budgetNs: number): Float32Array | undefined;
  /** What took longest of what cannot be divided. */
  readonly longestNs: number;
}

/** Runs that others need not wait for. */
export interface SlicedRuns {
  /** Most rows of one. */
  readonly rowsMax: number;
  /** One at a time: the one before is done, or given up. The numbers are those of `run`. */
  start(rows: Rows): SlicedRun;
}

/** A loaded model with its KV cache. Not reentrant: one `run` at a time. */
export interface Session {
  readonly backend: string;
  /** Resolves when nothing can be run any more: a device was lost, or hangs. Only a new process helps. */
  readonly lost?: Promise<Error>;
  /** Device name for people, e.g. "CPU (2 threads)". */
  readonly device: string;
  readonly bytes: {
    /** Mapped ones count too, each tensor once. */
    readonly weights: number;
    readonly kv: number;
    readonly scratch: number;
  };
  /** How many of them lie on a GPU; undefined: none. A software adapter's memory is the machine's own. */
  readonly vramBytes?: number;
  /** How many of the layers, the output counted as one, run on a GPU; undefined: none. */
  readonly gpuLayers?: { readonly count: number; readonly all: number };
  /**
   * Appends the rows of each sequence to its slot and returns the wanted logits, (wantedRows, vocabSize), in batch
   * order. The array is reused by the next run. Several sequences of one token each run as one pass.
   */
  run(batch: readonly Rows[]): Promise<Float32Array>;
  /** Undefined: logits are where the sampler is anyway. */
  readonly offers?: OfferRuns;
  /** Takes rows that were `drafted`. Of slots that go on only from checkpoints, see engine/batching/take-back.ts. */
  readonly verifies?: boolean;
  /**
   * As `run`, but returns the final hidden states of the wanted rows, (wantedRows, dim). An encoder reads each entry of
   * the batch as a whole sequence and keeps nothing of it.
   * @param pause awaited now and then in a long run of an encoder, where it has parts: other sessions may run meanwhile
   */
  states(batch: readonly StateRows[], pause?: () => Promise<void>): Promise<Float32Array>;
  /**
   * Undefined: a slot goes on from any length up to its own, by overwriting. Otherwise a run begins at 0, where the
   * slot stands, or where a checkpoint took it back to.
   */
  readonly checkpoints?: Checkpoints;
  /**
   * Context shift: drops `discard` tokens after the first `keep` of a slot that holds `length`, moves the rest down and
   * re-rotates their keys, so that they read as positions keep … length − discard − 1. What recurrences made of the
   * dropped tokens stays in their states, as it does in llama.cpp (llama-memory-recurrent.cpp, seq_rm).
   */
  shift(slot: number, options: { keep: number; discard: number; length: number }): void;
  /** Undefined: every run is as long as it is. */
  readonly slices?: SlicedRuns;
  /** Undefined: keys and values stay in their slots. */
  readonly blocks?: KvBlocks;
  /** Undefined: slots have their memory from the start, or keep it to the end. */
  readonly growth?: Growth;
  /** Copies the first `length` tokens' KV from one slot to another; of what else it holds, see `checkpoints`. */
  copy(options: { from: number; to: number; length: number }): void;
  close(): void;
}

/** Bytes that a sequence takes: for each token, and once. */
export interface SlotBytes {
  readonly perToken: number;
  readonly once: number;
}

export interface Backend {
  readonly name: string;
  /** Begins a load while the model's headers are read; left out: there is nothing to begin with. */
  begin?(options: Pick<LoadOptions, "threads">): Begun;
  /** What it runs of a file, where that is no list of steps: left out, `arch/` says. */
  program?(gguf: Gguf): Program;
  /** The ops of a program, and variants of ops, that it has no kernels for; left out: none. A load refuses them. */
  missing?(program: Program): readonly string[];
  /** What a slot takes; left out: all as float32. */
  slotBytes?(program: Pick<Program, "steps">, options: Pick<LoadOptions, KvOption>): SlotBytes;
  load(program: Program, options: LoadOptions): Promise<Session>;
  /**
   * Bytes of device memory that a load would take: weights, KV cache, scratch. Throws what the load would for a program
   * that no memory is enough for. Undefined where the memory is the machine's.
   */
  neededBytes?(program: Program, options: LoadOptions): Promise<number>;
}
