/**
 * The whole vocabulary of a forward pass. An architecture returns a list of these plain objects; a backend has one
 * entry per `op`. Neither imports the other. `src/backend/cpu/ops.ts` defines what each step means.
 *
 * A pass works on `rows` tokens at once; every activation is a float32 matrix (rows, dim), row-major. Rows belong to
 * sequences (slots of the KV cache) and have a position in them, which rotations, attention and positions look at.
 */
import type { Quant } from "../quant/quant.ts";

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
}

export type Activation = "silu" | "gelu" | "gelu_erf" | "relu" | "relu_sqr";

export type Step =
  /** out[r] = table[token[r]] · scale */
  | {
      readonly op: "embed";
      readonly out: Buf;
      readonly table: Weight;
      readonly scale: number;
    }
  /** out[r] = what the run was given for the row: the program goes on from where another one ended. */
  | { readonly op: "input"; readonly out: Buf }
  /**
   * y = x / sqrt(mean(x²) + eps) · w over each run of `w.inDim` values: a whole row, or each head where w is (headDim).
   * `out` may be `x`.
   */
  | {
      readonly op: "rmsNorm";
      readonly out: Buf;
      readonly x: Buf;
      readonly w: Weight;
      readonly eps: number;
    }
  /** y = (x − mean(x)) / sqrt(variance(x) + eps) · w + b over each row. `out` may be `x`. */
  | {
      readonly op: "layerNorm";
      readonly out: Buf;
      readonly x: Buf;
      readonly w: Weight;
      readonly b?: Weight;
      readonly eps: number;
    }
  /** out[r] = W · x[r] + b */
  | {
      readonly op: "linear";
      readonly out: Buf;
      readonly x: Buf;
      readonly w: Weight;
      readonly b?: Weight;
    }
  /** Rotates each head of x in place by its row's position. x: (rows, heads · headDim) */
  | {
      readonly op: "rope";
      readonly x: Buf;
      readonly heads: number;
      readonly headDim: number;
      readonly rope: RopeScaling;
    }
  /**
   * Stores k and v of the rows in the KV cache of `layer`, then causal attention of q over the row's own sequence:
   * scores = cap(scale · q·k), softmax, weighted sum of v. Head h of q uses KV head floor(h · nKvHeads / nHeads).
   * `window` > 0: a row at position p sees positions p − window + 1 … p only. `softCap` > 0: cap(s) = c · tanh(s / c).
   */
  | {
      readonly op: "attention";
      readonly out: Buf;
      readonly q: Buf;
      readonly k: Buf;
      readonly v: Buf;
      readonly layer: number;
      readonly nHeads: number;
      readonly nKvHeads: number;
      readonly headDim: number;
      readonly scale: number;
      readonly window: number;
      readonly softCap: number;
    }
  /**
   * Attention of each row over all rows of its own sequence in this run, before and behind it: scores = scale · q·k,
   * softmax, weighted sum of v. Nothing is kept for later runs.
   */
  | {
      readonly op: "bidirectionalAttention";
      readonly out: Buf;
      readonly q: Buf;
      readonly k: Buf;
      readonly v: Buf;
      readonly nHeads: number;
      readonly headDim: number;
      readonly scale: number;
    }
  /** out = down · act(up · x + upB) + downB */
  | {
      readonly op: "mlp";
      readonly out: Buf;
      readonly x: Buf;
      readonly up: Weight;
      readonly upB?: Weight;
      readonly down: Weight;
      readonly downB?: Weight;
      readonly act: Activation;
    }
  /** out = down · (act(gate · x + gateB) ⊙ (up · x + upB)) + downB */
  | {
      readonly op: "gatedMlp";
      readonly out: Buf;
      readonly x: Buf;
      readonly gate: Weight;
      readonly gateB?: Weight;
      readonly up: Weight;
      readonly upB?: Weight;
      readonly down: Weight;
      readonly downB?: Weight;
      readonly act: Activation;
    }
  /**
   * Mixture of experts: p = softmax(router · x) over all experts, the `nUsed` largest are run as gatedMlp and summed
   * with weights p (divided by their sum where `normalize`) times `scale`.
   */
  | {
      readonly op: "moe";
      readonly out: Buf;
      readonly x: Buf;
      readonly router: Weight;
      readonly gate: Weight;
      readonly up: Weight;
      readonly down: Weight;
      readonly act: Activation;
      readonly nUsed: number;
      readonly normalize: boolean;
      readonly scale: number;
    }
  /** out = a + b · scale. `out` may be `a` or `b`. */
  | {
      readonly op: "add";
      readonly out: Buf;
      readonly a: Buf;
      readonly b: Buf;
      readonly scale: number;
    }
  /**
   * x[r] *= 1 + coef · ln(floor((pos + offset) / floorScale) + 1): attention temperature by position (llama 4, mistral
   * 3).
   */
  | {
      readonly op: "positionScale";
      readonly x: Buf;
      readonly coef: number;
      readonly floorScale: number;
      readonly offset: number;
    }
  /** x[r] += table[position[r]]: learned positions. */
  | { readonly op: "addPosition"; readonly x: Buf; readonly table: Weight }
  /** x[r] += w */
  | { readonly op: "addVector"; readonly x: Buf; readonly w: Weight }
  /** out = the rows of x whose logits or states are wanted; steps that read `out` work on those only. */
  | { readonly op: "takeRows"; readonly out: Buf; readonly x: Buf }
  /** x = c · tanh(x / c) */
  | { readonly op: "softCap"; readonly x: Buf; readonly cap: number }
  /** x *= by */
  | { readonly op: "scale"; readonly x: Buf; readonly by: number };

/** One entry per op: a backend that forgets one does not compile. */
export type Ops<T, Context = void> = {
  readonly [S in Step as S["op"]]: (step: S, context: Context) => T;
};
