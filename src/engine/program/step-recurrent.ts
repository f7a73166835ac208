/** Steps that read neighbouring or earlier rows of their sequence in place of attention. */
import type { Activation, Buf, Weight } from "./step-parts.ts";

export type RecurrentStep =
  /**
   * A causal depthwise convolution: out[r] = act(b + Σ_j w[j] ⊙ x[r − n + 1 + j]), w (channels, n). Keeps the last n −
   * 1 rows of x; a sequence begins with zeros. `out` may be `x`.
   */
  | {
      readonly op: "causalConv";
      readonly out: Buf;
      readonly x: Buf;
      /** (channels, n) */
      readonly w: Weight;
      readonly b?: Weight;
      readonly act?: Activation;
      readonly layer: number;
    }
  /**
   * As `causalConv` over rows in both directions, keeping none: out[r] = act(b + Σ_j w[j] ⊙ x[r − m + j]) with m =
   * floor((n − 1) / 2); rows outside the sequence are zeros. `out` is not `x`.
   */
  | {
      readonly op: "centeredConv";
      readonly out: Buf;
      readonly x: Buf;
      /** (channels, n) */
      readonly w: Weight;
      readonly b?: Weight;
      readonly act?: Activation;
    }
  /** out[r] = x[r − 1] of the sequence; zeros for its first row. `out` is not `x`. */
  | { readonly op: "previousRow"; readonly out: Buf; readonly x: Buf; readonly layer: number }
  /**
   * The gated delta rule (arXiv:2412.06464). Each value head has a state M (headDim, headDim), initially zeros. With g
   * = exp(a · softplus(alpha + dt)) and β = sigmoid(beta): M ← g · M; M ← M + β · (v − M k) kᵀ; out = scale · M q.
   * alpha (rows, nHeads), or (rows, nHeads · headDim) for a decay per key channel. `heads: "modulo"`: value head h uses
   * key head h mod nKeyHeads; `"repeat"`: floor(h · nKeyHeads / nHeads). With `bound`, g = exp(bound · sigmoid(a ·
   * (alpha + dt))).
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
      /** A bias, as long as a row of alpha. */
      readonly dt: Weight;
      readonly layer: number;
      readonly nHeads: number;
      readonly nKeyHeads: number;
      readonly headDim: number;
      readonly heads: "modulo" | "repeat";
      readonly scale: number;
      readonly bound?: number;
    }
  /**
   * The recurrence of RWKV 6 (arXiv:2404.05892) and 7 (arXiv:2503.14456). Each head has a state S (values, keys), both
   * headDim, initially zeros. With g = exp(−exp(w)), or with `bound` g = exp(bound · sigmoid(w)): S ← S · diag(g) −
   * (S a) bᵀ + v kᵀ; out = S r, of the state before the row with `early`. a and b come together; without them nothing
   * is subtracted. With `complement`, (1 − g) ⊙ k replaces k. Head h uses key head floor(h · nKeyHeads / nHeads).
   */
  | {
      readonly op: "wkv";
      readonly out: Buf;
      readonly r: Buf;
      readonly w: Buf;
      /** (rows, nKeyHeads · headDim), like v */
      readonly k: Buf;
      readonly v: Buf;
      readonly a?: Buf;
      readonly b?: Buf;
      readonly layer: number;
      readonly nHeads: number;
      readonly nKeyHeads: number;
      readonly headDim: number;
      /** Negative. */
      readonly bound?: number;
      readonly early?: boolean;
      readonly complement?: boolean;
    }
  /**
   * The selective scan of Mamba. Each head has a state S (headDim, stateDim), initially zeros. With δ = softplus(dt +
   * dtB): S ← S · exp(δ · A) + δ · x Bᵀ; out = S C + D ⊙ x. B and C are (groups, stateDim); head h uses group floor(h ·
   * nGroups / nHeads). Mamba 1 has heads of one value, A (nHeads, stateDim); Mamba 2 has A (nHeads, 1).
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
    };
