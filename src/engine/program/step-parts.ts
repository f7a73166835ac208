/** Parts of steps: activations, weights, RoPE, gates, routing. */
import type { Quant } from "../formats/quant/quant.ts";

/** An activation: (rows, dim) float32. Two steps that name the same buffer share its memory. */
export interface Buf {
  readonly name: string;
  readonly dim: number;
}

/**
 * A weight matrix in its file: W (outDim, inDim), rows contiguous (GGUF's ne[0] = inDim), or a vector (`outDim` 1). A
 * slice of a fused tensor has `rowStart` > 0. Experts: `experts` matrices one after another.
 */
export interface Weight {
  /** GGUF tensor name. */
  readonly name: string;
  readonly quant: Quant;
  readonly inDim: number;
  readonly outDim: number;
  /** First row inside the tensor; 0 unless this is a part of a fused tensor. */
  readonly rowStart: number;
  /** Total rows of the tensor (per expert). `rowStart + outDim <= tensorRows`. */
  readonly tensorRows: number;
  /** Number of stacked matrices; 1 unless this is a stack of experts. */
  readonly experts: number;
  /** Factor on every weight of each stacked matrix, (experts): GGUF's `NAME.scale` tensor; undefined: 1. */
  readonly scale?: Float32Array;
  /** Low-rank changes: the effective matrix is W · scale + Σ b · a. */
  readonly lowRank?: readonly LowRank[];
  /** Changes that each row of a run chooses (`Rows.adapters`), in the order of application. */
  readonly offered?: readonly OfferedChange[];
}

/**
 * A low-rank change of a matrix (LoRA, arXiv:2106.09685): a (rank, inDim), b (outDim, rank), each stacked like the
 * matrix.
 */
export interface LowRank {
  readonly a: Weight;
  readonly b: Weight;
}

/** Changes of one matrix by adapters of the same rank and type: a (rank, inDim) and b (outDim, rank), each stacked. */
export interface OfferedChange extends LowRank {
  /** The adapter of each stacked matrix: its index in `Program.adapters`. */
  readonly members: readonly number[];
}

/** A part of a score that depends on the distance from the row to the key: T5's relative positions. */
export interface DistanceBias {
  /** (nHeads, 2 · far + 1): a key `d` rows later adds the value at d + far. */
  readonly values: Float32Array;
  /** Greater distances use this one, in each direction. */
  readonly far: number;
}

/** RoPE: angle = position · base^(−2i/rotaryDim), then scaled. (ggml_rope_ext, ggml-cpu/ops.cpp) */
export interface RopeScaling {
  /** Frequency base, e.g. 10000. */
  readonly base: number;
  /** Dimensions of each head that rotate; the rest pass through. */
  readonly rotaryDim: number;
  /** `norm`: pairs (2i, 2i+1). `neox`: pairs (i, i + rotaryDim/2). */
  readonly style: "norm" | "neox";
  /** Linear position scale (1 / factor); 1 for none. */
  readonly freqScale: number;
  /** YaRN mix; 0 turns it off. */
  readonly extFactor: number;
  /** Magnitude scale of cos and sin before YaRN's own correction. */
  readonly attnFactor: number;
  readonly betaFast: number;
  readonly betaSlow: number;
  /** YaRN's ramp begins and ends between pairs, not at whole ones. */
  readonly exactEnds?: boolean;
  /** Context length of training that YaRN refers to. */
  readonly ctxLenOrig: number;
  /** Per-pair divisors of the frequency (llama 3, longrope), (rotaryDim/2); undefined for none. */
  readonly freqFactors?: Float32Array;
  /** Replaces `freqFactors` if the session's context is longer than `ctxLenOrig` (longrope). */
  readonly freqFactorsLong?: Float32Array;
  /** Assigns a row's three positions to pairs (M-RoPE); omitted: the first rotates all. */
  readonly sections?: RopeSections;
  /** Rotates as for the position this many before the row's. */
  readonly delay?: number;
  /** Rotates in the opposite direction. */
  readonly back?: true;
}

/** Pairs by the position that rotates them: time, height, width. (`ggml_mrope_cache_init`, ggml-cpu/ops.cpp) */
export interface RopeSections {
  /** The number of pairs of each position; the sum is the number of pairs. */
  readonly pairs: readonly [number, number, number];
  /**
   * Pairs alternate: time, height, width, time … until height and width have all of theirs (IMROPE). Else three runs.
   */
  readonly interleaved: boolean;
}

/** `elu`: x above 0, else e^x − 1. */
export type Activation = "silu" | "gelu" | "gelu_erf" | "relu" | "relu_sqr" | "sigmoid" | "tanh" | "softplus" | "elu";

/**
 * The combination of gate and up in an MLP: act(gate) ⊙ up, or for `swiglu_oai` g · sigmoid(1.702 · g) · (u + 1) with g
 * = min(gate, 7) and u = up limited to −7 … 7. (`ggml_swiglu_oai`)
 */
export type Gating = Activation | "swiglu_oai";

/**
 * Limits of a gated MLP: act(gate) is at most `gate`, up is within −up … up. With `soft`, for SiLU only: cap(gate, c) ·
 * sigmoid(gate) ⊙ cap(up, d) with cap(x, c) = c · tanh(x / c), c = `gate` and d = `up`, which is 0 for no limit (SiTU).
 */
export interface GateLimit {
  readonly gate: number;
  readonly up: number;
  readonly soft?: true;
}

/** The scoring of experts for a row, from the router's logits. */
export interface Routing {
  /**
   * `softmax`: over all experts. `sigmoid`: per expert. `softmax_chosen`: experts are chosen by their logits, and their
   * weights are the softmax over the chosen. `sqrt_softplus`: sqrt(ln(1 + e^x)) per expert.
   */
  readonly score: "softmax" | "sigmoid" | "softmax_chosen" | "sqrt_softplus";
  /**
   * Experts are chosen only from the `used` groups with the best sums of their two best scores; groups are contiguous.
   */
  readonly groups?: { readonly count: number; readonly used: number };
  /**
   * This many neighbouring router outputs belong to one expert, whose number is the output's divided by this; its score
   * is that of the output with the expert's number, as in llama.cpp (GroveMoE). Default: 1.
   */
  readonly perExpert?: number;
  /** Each expert's input is multiplied by its weight, instead of its output (llama 4). */
  readonly weighInput?: boolean;
}
