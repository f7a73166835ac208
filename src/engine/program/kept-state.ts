/** The state of a sequence that a step keeps between runs. */
import type { RopeScaling } from "./step-parts.ts";

/** The state that a step keeps of each sequence between runs. */
export type SequenceState =
  /** Keys and values of every position. */
  | {
      readonly kind: "kv";
      readonly layer: number;
      readonly nKvHeads: number;
      readonly keyDim: number;
      /** 0: values are part of the keys. */
      readonly valueDim: number;
      /** Attention window of the step that stores them; 0: all positions. */
      readonly window: number;
      /** RoPE of the keys; undefined: none. */
      readonly rope: RopeScaling | undefined;
    }
  /** The last rows of an activation. */
  | { readonly kind: "conv"; readonly layer: number; readonly rows: number; readonly dim: number }
  /** A matrix per head, float32. */
  | { readonly kind: "recurrent"; readonly layer: number; readonly shape: readonly number[] };

export type KvState = Extract<SequenceState, { kind: "kv" }>;
export type RunningState = Exclude<SequenceState, KvState>;
