/**
 * The complete vocabulary of a forward pass. An architecture returns a list of these plain objects; a backend has one
 * entry per `op`. Neither imports the other. `src/engine/backends/cpu/ops.ts` defines each step's meaning.
 *
 * A pass works on `rows` tokens at once; every activation is a float32 matrix (rows, dim), row-major. Rows belong to
 * sequences (slots of the KV cache) and have a position there, which RoPE, attention and learned positions use.
 */
import type { Buf, DistanceBias, Weight, RopeScaling, Activation, Gating, GateLimit, Routing } from "./step-parts.ts";
import type { CompressedStep } from "./step-compressed.ts";
import type { MemoryStep } from "./step-memory.ts";
import type { RecurrentStep } from "./step-recurrent.ts";

export type {
  Buf,
  DistanceBias,
  Weight,
  LowRank,
  OfferedChange,
  RopeScaling,
  RopeSections,
  Activation,
  Gating,
  GateLimit,
  Routing,
} from "./step-parts.ts";

export type Step =
  /**
   * out[r] = table[token[r]] · scale. A row given as a vector (`Rows.vectors`) is that vector, or with `vectorToken`
   * that token's embedding.
   */
  | {
      readonly op: "embed";
      readonly out: Buf;
      readonly table: Weight;
      readonly scale: number;
      readonly vectorToken?: number;
    }
  /** out[r] = values[token[r]], values (tokens, n); a row given as a vector counts as token 0. */
  | { readonly op: "lookup"; readonly out: Buf; readonly values: Float32Array }
  /** out[r] = the run's input row: the program continues another one. */
  | { readonly op: "input"; readonly out: Buf }
  /**
   * y = x / sqrt(mean(x²) + eps) · w over each run of `w.inDim` values: a whole row, or each head if w is (headDim). If
   * w has several rows, run i of a row uses w's row i modulo their number. `out` may be `x`.
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
  /** A separate matrix per head, stacked in w: out[r, h] = W[h] · x[r, h]; W[h]ᵀ with `transposed`. */
  | {
      readonly op: "headLinear";
      readonly out: Buf;
      readonly x: Buf;
      readonly w: Weight;
      readonly transposed: boolean;
    }
  /** Applies RoPE to each head of x in place by its row's position. x: (rows, heads · headDim) */
  | {
      readonly op: "rope";
      readonly x: Buf;
      readonly heads: number;
      readonly headDim: number;
      readonly rope: RopeScaling;
      /** The first of a head's rotated values; default: 0. */
      readonly at?: number;
    }
  /**
   * Stores k and v of the rows in the KV cache of `layer`, then causal attention of q over the row's own sequence:
   * scores = cap(scale · q·k), softmax, weighted sum of v. Head h of q uses KV head floor(h · nKvHeads / nHeads).
   * `window` > 0: a row at position p attends to positions p − window + 1 … p only. `softCap` > 0: cap(s) = c · tanh(s
   * / c). Rows of a bidirectional span (`Rows.spans`) attend to all of that span, unless the step is `oneWay`.
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
      /** Values per head of v and of the result; default: `headDim`. */
      readonly valueDim?: number;
      readonly scale: number;
      readonly window: number;
      readonly softCap: number;
      /** The RoPE of k, which a context shift continues; undefined: k has no RoPE. */
      readonly rope: RopeScaling | undefined;
    } & AttentionVariant &
      Chosen)
  /** As `attention`, over the KV cache that an earlier step filled for layer `source`. Stores nothing. */
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
   * As `attention` of all heads over one key per position, whose last `valueDim` values are its value: multi-head
   * latent attention in its absorbed form (arXiv:2405.04434). The cache holds the keys only. The first values of a key
   * rotate.
   */
  | ({
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
      readonly sinks?: Weight;
    } & Chosen)
  /**
   * Chooses positions of each row's own sequence, up to the row's, for later attention steps. Stores k (rows, headDim)
   * in the KV cache `cache`. A position t scores Σ_h weights[h] · relu(q_h · k_t), in one group; without `weights` each
   * of the `heads` is a group, where it scores q_h · k_t. A block of `block` positions scores as its best position. out
   * (rows, groups · count): the numbers of the last `local` blocks and of the best others, ascending, then −1. If
   * blocks score alike, the first one is chosen. The first values of a key rotate. `closed`: a block scores as its last
   * position, and only blocks whose last position is the row's or earlier may be chosen.
   */
  | {
      readonly op: "choosePositions";
      readonly out: Buf;
      readonly q: Buf;
      readonly k: Buf;
      /** (rows, heads) */
      readonly weights?: Buf;
      readonly layer: number;
      readonly cache: number;
      readonly heads: number;
      readonly headDim: number;
      readonly count: number;
      readonly block: number;
      readonly local: number;
      readonly rope: RopeScaling | undefined;
      readonly closed?: true;
    }
  /**
   * Attention of each row over all rows of its own sequence in this run, in both directions: scores = scale · q·k,
   * softmax, weighted sum of v. Nothing is kept for later runs. `window` > 0: a row attends to rows at most
   * floor(window / 2) away. `inSpans`: a row attends as its span says (`Rows.spans`), by default to its span, or to
   * itself without a span. `nKvHeads` as for `attention`; default: `nHeads`. `alibi` as there; `bias` adds to scores.
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
      readonly inSpans?: boolean;
      readonly alibi?: number;
      readonly bias?: DistanceBias;
    }
  | RecurrentStep
  | CompressedStep
  | MemoryStep
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
      readonly limit?: GateLimit;
    }
  /**
   * Mixture of experts: p = softmax(router · x + routerB) over all experts, or by `routing`; the `nUsed` experts with
   * the largest p + selectB run as gatedMlp, or as mlp without a gate, and are summed with weights p (divided by their
   * sum if `normalize`) times `scale`. A router may read another buffer, `routed`. Biases stack like matrices. With
   * `chosen` (rows, nUsed), which has numbers of experts, the router only weighs these.
   */
  | {
      readonly op: "moe";
      readonly out: Buf;
      readonly x: Buf;
      readonly routed?: Buf;
      readonly chosen?: Buf;
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
      readonly limit?: GateLimit;
    }
  /**
   * out = a ⊙ act(b), or a ⊙ b without `act`. If b is narrower, each of its values applies to several neighbours in a.
   * `out` may be `a` or `b`.
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
  /** x = min(max(x, `min`), `max`); either limit may be infinite. */
  | { readonly op: "clamp"; readonly x: Buf; readonly min: number; readonly max: number }
  /** Slices each of `heads` equal parts of x's rows, beginning at `at`; the length follows from out's. */
  | {
      readonly op: "slice";
      readonly out: Buf;
      readonly x: Buf;
      readonly heads: number;
      readonly at: number;
    }
  /** Interleaves `heads` equal parts of the rows: a part of a, then a part of b. */
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
  /**
   * x has `parts` equal parts, and out has m parts of the same length: out[r, j] = Σ_i weights[r, at + i · m + j] ·
   * x[r, i]. `out` is not `x`.
   */
  | {
      readonly op: "mixParts";
      readonly out: Buf;
      readonly x: Buf;
      readonly weights: Buf;
      readonly at: number;
      readonly parts: number;
    }
  /**
   * The weights of hyper-connections (arXiv:2409.19606) between n `streams` and a block, in place. x (rows, n), or
   * (rows, n + n + n · n); each of these parts is multiplied by its value of `scale`, then `base` is added. Then the
   * first is sigmoid(x) + eps, the second 2 · sigmoid(x), and the rows of the third are softmax(x) + eps. The third is
   * divided `iterations` times by the sums of its columns + eps, and before that, except the first time, by the sums of
   * its rows + eps.
   */
  | {
      readonly op: "streamWeights";
      readonly x: Buf;
      readonly scale: Weight;
      /** (x.dim) */
      readonly base: Weight;
      readonly streams: number;
      readonly eps: number;
      readonly iterations: number;
    }
  /** x[r] += w */
  | { readonly op: "addVector"; readonly x: Buf; readonly w: Weight }
  /**
   * x[r] += a part of the row's given vector, beginning at `at`; rows with an id stay unchanged. Such vectors are wider
   * than an embedding, which comes first.
   */
  | { readonly op: "addGiven"; readonly x: Buf; readonly at: number }
  /** x[r] ⊙= w, or x divided by w; each value of w applies to several neighbours in x. */
  | { readonly op: "multiplyVector"; readonly x: Buf; readonly w: Weight; readonly divide?: boolean }
  /** Scales each row of x to the length of `like`'s: x[r] *= |like[r]| / |x[r]| */
  | { readonly op: "matchLength"; readonly x: Buf; readonly like: Buf }
  /**
   * x = relu(x − mean − factor · deviation) per row, with the sample standard deviation: keeps the largest of normally
   * distributed values (Gemma 3n).
   */
  | { readonly op: "keepLargest"; readonly x: Buf; readonly factor: number }
  /** out = the rows of x whose logits or states are wanted; steps that read `out` work on those only. */
  | { readonly op: "takeRows"; readonly out: Buf; readonly x: Buf }
  /** x = c · tanh(x / c) */
  | { readonly op: "softCap"; readonly x: Buf; readonly cap: number }
  /** x *= by */
  | { readonly op: "scale"; readonly x: Buf; readonly by: number };

/** The positions that a row attends to: all, or only chosen blocks. */
interface Chosen {
  /** As `choosePositions` writes it, one group for each KV head. */
  readonly chosen?: Buf;
  /** Positions of a block. */
  readonly chosenBlock?: number;
}

/** Rare features of attention. */
interface AttentionVariant {
  /** A score per head that takes part in the softmax but has no value, (nHeads). */
  readonly sinks?: Weight;
  /**
   * ALiBi (arXiv:2108.12409): scores − slope · distance; slopes derive from this largest bias. (`ggml_soft_max_ext`)
   */
  readonly alibi?: number;
  /** Adds to scores; not for `sharedAttention`. */
  readonly bias?: DistanceBias;
  /** Rows of a span are causal, too: they do not see later rows. */
  readonly oneWay?: boolean;
  /** `window` cuts the positions into chunks: a row attends to its own chunk, up to itself (llama 4). */
  readonly chunked?: boolean;
}

/** One entry per op: a backend that omits one does not compile. @typeParam Absent marks a missing kernel */
export type Ops<T, Context = void, Absent = never> = {
  readonly [S in Step as S["op"]]: ((step: S, context: Context) => T) | Absent;
};
