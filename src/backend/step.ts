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

export type Activation = "silu" | "gelu" | "gelu_erf" | "relu" | "relu_sqr" | "sigmoid" | "tanh";

/**
 * How gate and up of an MLP meet: act(gate) ⊙ up, or for `swiglu_oai` g · sigmoid(1.702 · g) · (u + 1) where g is gate
 * limited to at most 7 and u is up limited to −7 … 7. (`ggml_swiglu_oai`)
 */
export type Gating = Activation | "swiglu_oai";

/** How a mixture of experts scores its experts for a row, from its router's logits. */
export interface Routing {
  /**
   * `softmax`: over all experts. `sigmoid`: of each. `softmax_chosen`: experts are chosen by their logits, weights are
   * the softmax of those that were.
   */
  readonly score: "softmax" | "sigmoid" | "softmax_chosen";
  /** Only the `used` groups with the best sums of their two best scores are chosen from; experts in order. */
  readonly groups?: { readonly count: number; readonly used: number };
  /** Each expert reads its input times its weight, instead of its output being weighted (llama 4). */
  readonly weighInput?: boolean;
}

export type Step =
  /**
   * out[r] = table[token[r]] · scale. A row that was given as a vector (`Rows.vectors`) is that vector, or with
   * `vectorToken` what that token gives.
   */
  | {
      readonly op: "embed";
      readonly out: Buf;
      readonly table: Weight;
      readonly scale: number;
      readonly vectorToken?: number;
    }
  /** out[r] = what the run was given for the row: the program goes on from where another one ended. */
  | { readonly op: "input"; readonly out: Buf }
  /**
   * y = x / sqrt(mean(x²) + eps) · w over each run of `w.inDim` values: a whole row, or each head where w is (headDim).
   * Where w has several rows, run i of a row is multiplied by row i of them, again from the first when they end. `out`
   * may be `x`.
   */
  | {
      readonly op: "rmsNorm";
      readonly out: Buf;
      readonly x: Buf;
      readonly w: Weight;
      readonly eps: number;
    }
  /** As `rmsNorm`, without a weight, over each run of `run` values. */
  | { readonly op: "bareRmsNorm"; readonly out: Buf; readonly x: Buf; readonly run: number; readonly eps: number }
  /** y = x / sqrt(Σ x² + eps) over each run of `run` values. `out` may be `x`. */
  | { readonly op: "l2Norm"; readonly out: Buf; readonly x: Buf; readonly run: number; readonly eps: number }
  /**
   * y = (x − mean(x)) / sqrt(variance(x) + eps) · w + b, runs as for `rmsNorm`; b as long as w. `out` may be `x`.
   */
  | {
      readonly op: "layerNorm";
      readonly out: Buf;
      readonly x: Buf;
      readonly w: Weight;
      readonly b?: Weight;
      readonly eps: number;
    }
  /** As `layerNorm`, over each row, without weight and bias. */
  | { readonly op: "bareLayerNorm"; readonly out: Buf; readonly x: Buf; readonly eps: number }
  /** out[r] = W · x[r] + b */
  | {
      readonly op: "linear";
      readonly out: Buf;
      readonly x: Buf;
      readonly w: Weight;
      readonly b?: Weight;
    }
  /** Each head by a matrix of its own, which w stacks: out[r, h] = W[h] · x[r, h]; W[h]ᵀ with `transposed`. */
  | {
      readonly op: "headLinear";
      readonly out: Buf;
      readonly x: Buf;
      readonly w: Weight;
      readonly transposed: boolean;
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
   * Rows of a span that the run says sees both ways (`Rows.spans`) see all of that span.
   */
  | ({
      readonly op: "attention";
      readonly out: Buf;
      readonly q: Buf;
      readonly k: Buf;
      readonly v: Buf;
      readonly layer: number;
      readonly nHeads: number;
      readonly nKvHeads: number;
      readonly headDim: number;
      /** Values of each head of v and of the result; left out: `headDim`. */
      readonly valueDim?: number;
      readonly scale: number;
      readonly window: number;
      readonly softCap: number;
      /** How k was rotated, which a context shift turns on; undefined where it was not. */
      readonly rope: RopeScaling | undefined;
    } & AttentionVariant)
  /** As `attention`, over the KV cache that an earlier step filled, that of layer `source`. Stores nothing. */
  | ({
      readonly op: "sharedAttention";
      readonly out: Buf;
      readonly q: Buf;
      readonly layer: number;
      readonly source: number;
      readonly nHeads: number;
      readonly nKvHeads: number;
      readonly headDim: number;
      readonly valueDim?: number;
      readonly scale: number;
      readonly window: number;
      readonly softCap: number;
    } & AttentionVariant)
  /**
   * As `attention` of all heads over one key for each position, whose last `valueDim` values are its value: multi-head
   * latent attention in its absorbed form (arXiv:2405.04434). The cache keeps the keys only. The first values of a
   * key rotate.
   */
  | {
      readonly op: "latentAttention";
      readonly out: Buf;
      readonly q: Buf;
      readonly k: Buf;
      readonly layer: number;
      readonly nHeads: number;
      readonly headDim: number;
      readonly valueDim: number;
      readonly scale: number;
      readonly rope: RopeScaling | undefined;
    }
  /**
   * Attention of each row over all rows of its own sequence in this run, before and behind it: scores = scale · q·k,
   * softmax, weighted sum of v. Nothing is kept for later runs. `window` > 0: a row sees those at most
   * floor(window / 2) away. `nKvHeads` as for `attention`; left out: `nHeads`. `alibi` as there.
   */
  | {
      readonly op: "bidirectionalAttention";
      readonly out: Buf;
      readonly q: Buf;
      readonly k: Buf;
      readonly v: Buf;
      readonly nHeads: number;
      readonly nKvHeads?: number;
      readonly headDim: number;
      readonly scale: number;
      readonly window?: number;
      readonly alibi?: number;
    }
  /**
   * A causal convolution of each channel by itself (depthwise): out[r] = act(b + Σ_j w[j] ⊙ x[r − n + 1 + j]),
   * w (channels, n). Keeps the last n − 1 rows of x; a sequence begins with zeros. `out` may be `x`.
   */
  | {
      readonly op: "causalConv";
      readonly out: Buf;
      readonly x: Buf;
      /** One row of n for each channel. */
      readonly w: Weight;
      readonly b?: Weight;
      readonly act?: Activation;
      readonly layer: number;
    }
  /**
   * The gated delta rule (arXiv:2412.06464). Of each value head a state M (headDim, headDim) is kept, at first zeros.
   * With g = exp(a · softplus(alpha + dt)) and β = sigmoid(beta): M ← g · M; M ← M + β · (v − M k) kᵀ;
   * out = scale · M q.
   * alpha (rows, nHeads), or (rows, nHeads · headDim) for a decay of each key channel. `heads: "modulo"`: value head h
   * uses key head h mod nKeyHeads; `"repeat"`: floor(h · nKeyHeads / nHeads).
   */
  | {
      readonly op: "deltaRule";
      readonly out: Buf;
      readonly q: Buf;
      readonly k: Buf;
      readonly v: Buf;
      readonly alpha: Buf;
      readonly beta: Buf;
      /** (nHeads) */
      readonly a: Weight;
      /** As long as alpha. */
      readonly dt: Weight;
      readonly layer: number;
      readonly nHeads: number;
      readonly nKeyHeads: number;
      readonly headDim: number;
      readonly heads: "modulo" | "repeat";
      readonly scale: number;
    }
  /**
   * The selective scan of Mamba. Of each head a state S (headDim, stateDim) is kept, at first zeros. With
   * δ = softplus(dt + dtB): S ← S · exp(δ · A) + δ · x Bᵀ; out = S C + D ⊙ x. B and C are (groups, stateDim), head h
   * uses group floor(h · nGroups / nHeads). Mamba 1 is heads of one value, A (nHeads, stateDim); Mamba 2 has
   * A (nHeads, 1).
   */
  | {
      readonly op: "selectiveScan";
      readonly out: Buf;
      readonly x: Buf;
      /** (rows, nHeads) */
      readonly dt: Buf;
      readonly dtB: Weight;
      readonly b: Buf;
      readonly c: Buf;
      readonly a: Weight;
      /** (nHeads) */
      readonly d: Weight;
      readonly layer: number;
      readonly nHeads: number;
      readonly headDim: number;
      readonly stateDim: number;
      readonly nGroups: number;
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
      readonly act: Gating;
    }
  /**
   * Mixture of experts: p = softmax(router · x + routerB) over all experts, or what `routing` says; the `nUsed` with
   * the largest p + selectB are run as gatedMlp, or as mlp where there is no gate, and summed with weights p (divided
   * by their sum where `normalize`) times `scale`. A router may read another buffer, `routed`. Biases stack as
   * matrices do.
   */
  | {
      readonly op: "moe";
      readonly out: Buf;
      readonly x: Buf;
      readonly routed?: Buf;
      readonly router: Weight;
      readonly routerB?: Weight;
      readonly selectB?: Weight;
      readonly gate?: Weight;
      readonly gateB?: Weight;
      readonly up: Weight;
      readonly upB?: Weight;
      readonly down: Weight;
      readonly downB?: Weight;
      readonly act: Gating;
      readonly nUsed: number;
      readonly normalize: boolean;
      readonly scale: number;
      readonly routing?: Routing;
    }
  /**
   * out = a ⊙ act(b), b itself without `act`. Where b is narrower, each of its values meets as many neighbours of a as
   * go into it. `out` may be `a` or `b`.
   */
  | {
      readonly op: "multiply";
      readonly out: Buf;
      readonly a: Buf;
      readonly b: Buf;
      readonly act?: Activation;
    }
  /** x = act(x) */
  | { readonly op: "activate"; readonly x: Buf; readonly act: Activation }
  /** x = x limited to −limit … limit */
  | { readonly op: "clamp"; readonly x: Buf; readonly limit: number }
  /** Of each of `heads` equal parts of a row of x, the values from `at` on: as many as there is room for in out's. */
  | {
      readonly op: "slice";
      readonly out: Buf;
      readonly x: Buf;
      readonly heads: number;
      readonly at: number;
    }
  /** Of each of `heads` equal parts of the rows: that of a, then that of b. */
  | {
      readonly op: "join";
      readonly out: Buf;
      readonly a: Buf;
      readonly b: Buf;
      readonly heads: number;
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

/** What few architectures want of attention. */
interface AttentionVariant {
  /** A score of each head that takes part in the softmax and has no value, (nHeads). */
  readonly sinks?: Weight;
  /** ALiBi (arXiv:2108.12409): scores − slope · distance, slopes from this largest bias. (`ggml_soft_max_ext`) */
  readonly alibi?: number;
  /** `window` cuts the positions into chunks: a row sees those of its own chunk, up to itself (llama 4). */
  readonly chunked?: boolean;
}

/** What a step keeps of each sequence between runs. */
export type SequenceState =
  /** Keys and values of every position. */
  | {
      readonly kind: "kv";
      readonly layer: number;
      readonly nKvHeads: number;
      readonly keyDim: number;
      /** 0: values are part of the keys. */
      readonly valueDim: number;
      /** Positions that the step which fills it looks back on; 0: all. */
      readonly window: number;
      /** How keys are rotated; undefined where they are not. */
      readonly rope: RopeScaling | undefined;
    }
  /** The last rows of an activation. */
  | { readonly kind: "conv"; readonly layer: number; readonly rows: number; readonly dim: number }
  /** A matrix for each head, float32. */
  | { readonly kind: "recurrent"; readonly layer: number; readonly shape: readonly number[] };

export type KvState = Extract<SequenceState, { kind: "kv" }>;
export type RunningState = Exclude<SequenceState, KvState>;

/** One entry per op: a backend that forgets one does not compile. @typeParam Absent what stands for a missing kernel */
export type Ops<T, Context = void, Absent = never> = {
  readonly [S in Step as S["op"]]: ((step: S, context: Context) => T) | Absent;
};
