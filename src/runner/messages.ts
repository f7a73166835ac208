/**
 * What the server and a runner say to each other over the spawn channel. Structured-clone values only; ids are the
 * server's.
 */
import type { Code } from "../base/errors.ts";
import type { KernelChoice } from "../base/kernel-tuning.ts";
import type { EmbedEvent } from "../engine/embedder.ts";
import type { EngineInfo } from "../engine/load.ts";
import type { SequenceEvent } from "../engine/sequence.ts";
import type { SamplingOptions } from "../sampling/options.ts";

export interface LoadMessage {
  readonly kind: "load";
  /** GGUF file. */
  readonly path: string;
  /** Adapter files, laid over the model in this order. */
  readonly adapters: readonly string[];
  /** `auto`, or the name of a backend. */
  readonly backend: string;
  /** Layers on the GPU, the output counted as one; 0 keeps away from it; undefined: as many as there is room for. */
  readonly gpuLayers: number | undefined;
  /** Bytes that the model may take on the GPU; undefined: what there is. */
  readonly gpuMemory: number | undefined;
  /** Which kernels a GPU runs; undefined: `auto`. */
  readonly gpuKernels?: KernelChoice | undefined;
  /** `auto`: as `cacheMemory` allows. */
  readonly ctxLen: number | "auto";
  /** Bytes of the machine's memory that the KV cache may take. */
  readonly cacheMemory?: number | undefined;
  readonly slots: number;
  /** Prompt tokens of one run. */
  readonly chunk: number;
  /** 0: one per physical core. */
  readonly threads: number;
  readonly precise: boolean;
  readonly cacheDir: string | undefined;
}

export interface GenerateMessage {
  readonly kind: "generate";
  readonly id: number;
  /** Text with the markup of special tokens in it. */
  readonly prompt: string;
  /** The text after the gap that the model fills in; the prompt is the text before it, and neither has markup. */
  readonly suffix?: string;
  /** Token ids that come before the prompt; the prompt then gets no BOS. */
  readonly context: readonly number[];
  readonly options: SamplingOptions;
  readonly format?: "json" | Record<string, unknown>;
  readonly shift: boolean;
  /** Whether a prompt longer than the context is cut (the default) or refused. */
  readonly truncate?: boolean;
  /** How many alternatives to name for each token; undefined: no log-probabilities. */
  readonly logprobs?: number;
  /** Texts of control tokens that come out as text; the others give none. */
  readonly visible?: readonly string[];
}

/** Answered by `embedded`, once or more often, or by `embedFailed`. */
export interface EmbedMessage {
  readonly kind: "embed";
  readonly id: number;
  /** At least one. */
  readonly inputs: readonly string[];
  /** Whether a text loses what the context has no room for, or fails the request. */
  readonly truncate: boolean;
  /** Tokens of a text, where that is less than the model was loaded for. */
  readonly ctxLen?: number;
}

/** Server → runner. */
export type ToRunner =
  | LoadMessage
  | GenerateMessage
  | EmbedMessage
  | { readonly kind: "cancel"; readonly id: number }
  /** Asks whether anyone is there; answered by `pong`. */
  | { readonly kind: "ping"; readonly id: number }
  /** Asks how many tokens a prompt has; answered by `count`. */
  | { readonly kind: "count"; readonly id: number; readonly prompt: string }
  /** Answered by `tokens`. */
  | {
      readonly kind: "tokenize";
      readonly id: number;
      readonly text: string;
      readonly addSpecial: boolean;
      readonly parseSpecial: boolean;
      readonly wantsPieces: boolean;
    }
  /** Answered by `text`. */
  | { readonly kind: "detokenize"; readonly id: number; readonly tokens: readonly number[] }
  | { readonly kind: "close" };

/** Runner → server. */
export type FromRunner =
  | { readonly kind: "progress"; readonly fraction: number }
  | { readonly kind: "ready"; readonly info: EngineInfo }
  /** Loading failed; the process ends. */
  | { readonly kind: "failed"; readonly code: Code; readonly message: string }
  | { readonly kind: "events"; readonly events: readonly SequenceEvent[] }
  | EmbedEvent
  | Reply;

/** What answers one question. */
export type Reply =
  | { readonly kind: "pong"; readonly id: number }
  | { readonly kind: "count"; readonly id: number; readonly tokens: number }
  | {
      readonly kind: "tokens";
      readonly id: number;
      readonly tokens: Int32Array;
      /** The bytes of each token, where they were asked for. */
      readonly pieces?: readonly Uint8Array[];
    }
  | { readonly kind: "text"; readonly id: number; readonly text: string }
  | { readonly kind: "refused"; readonly id: number; readonly code: Code; readonly message: string };
