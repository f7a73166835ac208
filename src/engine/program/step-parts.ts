/** What steps are made of: activations, weights, rotations, gates, routing. */
import type { Quant } from "../formats/quant/quant.ts";

/** An activation: (rows, dim) float32. Two steps that name the same buffer share its memory. */
export interface Buf {
  readonly name: string;
  readonly dim: number;
}

/**
 * A weight matrix in its file: `outDim` rows of `inDim` weights each, rows contiguous (GGUF's ne[0] = inDim), or a
 * vector (`outDim` 1). A slice of a fused tensor is `rowStart` > 0. Experts: `experts` matrices one after another.
 */
export interface Weight {
  /** GGUF tensor name. */
  readonly name: string;
  readonly quant: Quant;
  readonly inDim: number;
  readonly outDim: number;
  /** First row inside the tensor; 0 unless this is a part of a fused tensor. */
  readonly rowStart: number;
  /** Rows that the tensor has in all (per expert). `rowStart + outDim <= tensorRows`. */
  readonly tensorRows: number;
  /** Number of stacked matrices; 1 unless this is a stack of experts. */
  readonly experts: number;
  /** Factor on every weight of each stacked matrix, (experts): GGUF's `NAME.scale` tensor; undefined for 1. */
  readonly scale?: Float32Array;
  /** What is added to it: the matrix stands for W · scale + Σ b · a. */
  readonly lowRank?: readonly LowRank[];
}

/**
 * A change of a matrix, of its shape but of low rank (LoRA, arXiv:2106.09685): a (rank, inDim), b (outDim, rank), each
 * stacked as the matrix is.
 */
export interface LowRank {
  readonly a: Weight;
  readonly b: Weight;
}

/**
 * How positions become angles: angle = position · base^(−2i/rotaryDim), then scaled. (ggml_rope_ext, ggml-cpu/ops.cpp)
 */
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
  /** Context length of training that YaRN refers to. */
  readonly ctxLenOrig: number;
  /** Per-pair divisors of the frequency (llama 3, longrope), (rotaryDim/2); undefined for none. */
  readonly freqFactors?: Float32Array;
  /** Takes the place of `freqFactors` where the session's context is longer than `ctxLenOrig` (longrope). */
  readonly freqFactorsLong?: Float32Array;
  /** Which of a row's three positions turns which pair (M-RoPE); left out: the first turns all. */
  readonly sections?: RopeSections;
}

/** Pairs by the position that turns them: time, height, width. (`ggml_mrope_cache_init`, ggml-cpu/ops.cpp) */
export interface RopeSections {
  /** How many pairs each of the three has: together all of them. */
  readonly pairs: readonly [number, number, number];
  /** Pairs go round: time, height, width, time … until height and width have theirs (IMROPE). Else in three runs. */
  readonly interleaved: boolean;
}

export type Activation = "silu" | "gelu" | "gelu_erf" | "relu" | "relu_sqr" | "sigmoid" | "tanh" | "softplus";

/**
 * How gate and up of an MLP meet: act(gate) ⊙ up, or for `swiglu_oai` g · sigmoid(1.702 · g) · (u + 1) where g is gate
 * limited to at most 7 and u is up limited to −7 … 7. (`ggml_swiglu_oai`)
 */
export type Gating = Activation | "swiglu_oai";

/** What limits the gate of an MLP: act(gate) is at most `gate`, up within −up … up. */
export interface GateLimit {
  readonly gate: number;
  readonly up: number;
}

/** How a mixture of experts scores its experts for a row, from its router's logits. */
export interface Routing {
  /**
   * `softmax`: over all experts. `sigmoid`: of each. `softmax_chosen`: experts are chosen by their logits, weights are
   * the softmax of those that were.
   */
  readonly score: "softmax" | "sigmoid" | "softmax_chosen";
  /** Only the `used` groups with the best sums of their two best scores are chosen from; experts in order. */
  readonly groups?: { readonly count: number; readonly used: number };
  /**
   * So many neighbours of the router's outputs stand for one expert, whose number is theirs divided by this, and whose
   * score is that of the output of that number, as llama.cpp has it (GroveMoE). Left out: 1.
   */
  readonly perExpert?: number;
  /** Each expert reads its input times its weight, instead of its output being weighted (llama 4). */
  readonly weighInput?: boolean;
}
