/**
 * The recurrent ops of the reference: convolutions, previous rows, gated delta rule, RWKV, selective scan. Rows of a
 * sequence are processed one by one; states between them are float32.
 */
import { assert } from "../../../base/index.ts";
import type { Ops, Step } from "../../program/step.ts";
import { valuesOf } from "../../program/sequence-state.ts";
import { stateOf } from "../../program/describe.ts";
import { activations, dot, softplus, vector, wholeWeight } from "./math.ts";
import type { Matrix, Pass } from "./pass.ts";

type RecurrentOp = "causalConv" | "centeredConv" | "previousRow" | "deltaRule" | "wkv" | "selectiveScan";

export const recurrentOps: Pick<Ops<void, Pass>, RecurrentOp> = {
  causalConv(step, pass) {
    const x = pass.get(step.x);
    const out = pass.make(step.out, x.rows);
    const taps = step.w.inDim;
    const w = wholeWeight(step.w, pass);
    const bias = step.b && vector(step.b, pass).slice();
    const activate = step.act ? activations[step.act] : (value: number): number => value;
    for (let r = 0; r < x.rows; r++) {
      const past = stateFor(step, r, pass); // (taps − 1, dim)
      const row = x.data.slice(r * x.dim, (r + 1) * x.dim); // out may be x
      for (let c = 0; c < x.dim; c++) {
        let sum = bias?.[c] ?? 0;
        for (let j = 0; j < taps - 1; j++) sum += w[c * taps + j]! * past[j * x.dim + c]!;
        sum += w[c * taps + taps - 1]! * row[c]!;
        out.data[r * out.dim + c] = activate(sum);
      }
      past.copyWithin(0, x.dim);
      past.set(row, (taps - 2) * x.dim);
    }
  },

  centeredConv(step, pass) {
    const x = pass.get(step.x);
    const out = pass.make(step.out, x.rows);
    const taps = step.w.inDim;
    const before = Math.floor((taps - 1) / 2);
    const w = wholeWeight(step.w, pass);
    const bias = step.b && vector(step.b, pass).slice();
    const activate = step.act ? activations[step.act] : (value: number): number => value;
    for (let r = 0; r < x.rows; r++) {
      for (let c = 0; c < x.dim; c++) {
        let sum = bias?.[c] ?? 0;
        for (let j = 0; j < taps; j++) {
          const at = r + j - before;
          const isOwn = pass.sequences[at] === pass.sequences[r];
          if (isOwn) sum += w[c * taps + j]! * x.data[at * x.dim + c]!;
        }
        out.data[r * out.dim + c] = activate(sum);
      }
    }
  },

  previousRow(step, pass) {
    const x = pass.get(step.x);
    const out = pass.make(step.out, x.rows);
    for (let r = 0; r < x.rows; r++) {
      const past = stateFor(step, r, pass); // (dim)
      out.data.set(past, r * x.dim);
      past.set(x.data.subarray(r * x.dim, (r + 1) * x.dim));
    }
  },

  deltaRule(step, pass) {
    const { nHeads, nKeyHeads, headDim, heads } = step;
    const v = pass.get(step.v);
    const out = pass.make(step.out, v.rows);
    const parts = {
      q: pass.get(step.q),
      k: pass.get(step.k),
      v,
      alpha: pass.get(step.alpha),
      beta: pass.get(step.beta),
    };
    const [a, dt] = [vector(step.a, pass).slice(), vector(step.dt, pass).slice()];
    for (let r = 0; r < v.rows; r++) {
      const state = stateFor(step, r, pass);
      for (let h = 0; h < nHeads; h++) {
        const own = heads === "modulo" ? h % nKeyHeads : Math.floor((h * nKeyHeads) / nHeads);
        const key = r * nKeyHeads + own;
        const perChannel = parts.alpha.dim > nHeads;
        const alphaAt = perChannel ? (r * nHeads + h) * headDim : r * nHeads + h;
        const decay = Float64Array.from({ length: headDim }, (_, i) => {
          const j = perChannel ? i : 0;
          const rate = parts.alpha.data[alphaAt + j]! + dt[perChannel ? h * headDim + i : h]!;
          if (step.bound === undefined) return Math.exp(a[h]! * softplus(rate));
          return Math.exp(step.bound * activations.sigmoid(a[h]! * rate));
        });
        deltaStep(
          {
            m: state.subarray(h * headDim * headDim, (h + 1) * headDim * headDim),
            q: parts.q.data.subarray(key * headDim, (key + 1) * headDim),
            k: parts.k.data.subarray(key * headDim, (key + 1) * headDim),
            v: v.data.subarray((r * nHeads + h) * headDim, (r * nHeads + h + 1) * headDim),
            out: out.data.subarray((r * nHeads + h) * headDim, (r * nHeads + h + 1) * headDim),
          },
          { decay, beta: activations.sigmoid(parts.beta.data[r * nHeads + h]!), scale: step.scale },
        );
      }
    }
  },

  wkv(step, pass) {
    const { nHeads, nKeyHeads, headDim, bound, early = false, complement = false } = step;
    const [r, w, k, v] = [step.r, step.w, step.k, step.v].map((buf) => pass.get(buf)) as [
      Matrix,
      Matrix,
      Matrix,
      Matrix,
    ]; // one per buffer
    const removal = step.a && step.b && { a: pass.get(step.a), b: pass.get(step.b) };
    const out = pass.make(step.out, r.rows);
    for (let row = 0; row < r.rows; row++) {
      const state = stateFor(step, row, pass);
      for (let h = 0; h < nHeads; h++) {
        const [own, key] = [row * nHeads + h, row * nKeyHeads + Math.floor((h * nKeyHeads) / nHeads)];
        const part = ({ data }: Matrix, at: number): Float32Array => data.subarray(at * headDim, (at + 1) * headDim);
        const decay = Float64Array.from(part(w, own), (rate) =>
          Math.exp(bound === undefined ? -Math.exp(rate) : bound * activations.sigmoid(rate)),
        );
        const keys = Float64Array.from(part(k, key), (value, j) => (complement ? value * (1 - decay[j]!) : value));
        const minus = removal && { a: part(removal.a, own), b: part(removal.b, own) };
        const m = state.subarray(h * headDim * headDim, (h + 1) * headDim * headDim);
        wkvStep({ m, r: part(r, own), k: keys, v: part(v, key), out: part(out, own) }, { decay, minus, early });
      }
    }
  },

  selectiveScan(step, pass) {
    const { nHeads, headDim, stateDim, nGroups } = step;
    const [x, dt, b, c] = [pass.get(step.x), pass.get(step.dt), pass.get(step.b), pass.get(step.c)];
    const out = pass.make(step.out, x.rows);
    const [a, d, dtB] = [wholeWeight(step.a, pass), wholeWeight(step.d, pass), vector(step.dtB, pass).slice()];
    const each = a.length / nHeads; // 1, or one per value of the state
    for (let r = 0; r < x.rows; r++) {
      const state = stateFor(step, r, pass); // (nHeads, headDim, stateDim)
      for (let h = 0; h < nHeads; h++) {
        const delta = softplus(dt.data[r * nHeads + h]! + dtB[h]!);
        const group = (r * nGroups + Math.floor((h * nGroups) / nHeads)) * stateDim;
        for (let i = h * headDim; i < (h + 1) * headDim; i++) {
          const value = x.data[r * x.dim + i]!;
          let sum = d[h]! * value;
          for (let n = 0; n < stateDim; n++) {
            const decay = Math.exp(delta * a[each === 1 ? h : h * stateDim + n]!);
            const next = state[i * stateDim + n]! * decay + delta * value * b.data[group + n]!;
            state[i * stateDim + n] = next;
            sum += next * c.data[group + n]!;
          }
          out.data[r * out.dim + i] = sum;
        }
      }
    }
  },
};

/** The state of a row's sequence in a step: zeros before its first row. */
export function stateFor(step: Step, row: number, pass: Pass): Float32Array {
  const all = pass.kept.get(step);
  const state = stateOf(step);
  assert(all && state && state.kind !== "kv", `nothing is kept for ${step.op}`);
  const size = valuesOf(state);
  const own = all.subarray(pass.slots[row]! * size, (pass.slots[row]! + 1) * size);
  if (pass.cells[row] === 0) own.fill(0);
  return own;
}

interface DeltaHead {
  readonly m: Float32Array; // (values, keys)
  readonly q: Float32Array; // (keys)
  readonly k: Float32Array; // (keys)
  readonly v: Float32Array; // (values)
  readonly out: Float32Array; // (values)
}

/** One row of one head. */
function deltaStep(
  { m, q, k, v, out }: DeltaHead,
  { decay, beta, scale }: { decay: Float64Array; beta: number; scale: number },
): void {
  const dim = v.length;
  for (let i = 0; i < dim; i++) {
    let known = 0;
    for (let j = 0; j < dim; j++) {
      const kept = m[i * dim + j]! * decay[j]!;
      m[i * dim + j] = kept;
      known += kept * k[j]!;
    }
    const change = beta * (v[i]! - known);
    let sum = 0;
    for (let j = 0; j < dim; j++) {
      const next = m[i * dim + j]! + change * k[j]!;
      m[i * dim + j] = next;
      sum += next * q[j]!;
    }
    out[i] = scale * sum;
  }
}

interface WkvHead {
  readonly m: Float32Array; // (values, keys)
  readonly r: Float32Array; // (keys)
  readonly k: Float64Array; // (keys)
  readonly v: Float32Array; // (values)
  readonly out: Float32Array; // (values)
}

/** One row of one head. */
function wkvStep(
  { m, r, k, v, out }: WkvHead,
  {
    decay,
    minus,
    early,
  }: { decay: Float64Array; minus: { a: Float32Array; b: Float32Array } | undefined; early: boolean },
): void {
  const dim = v.length;
  for (let i = 0; i < dim; i++) {
    const row = m.subarray(i * dim, (i + 1) * dim);
    if (early) out[i] = dot(row, 0, r, 0, dim);
    const removed = minus ? dot(row, 0, minus.a, 0, dim) : 0;
    for (let j = 0; j < dim; j++) {
      row[j] = row[j]! * decay[j]! - removed * (minus?.b[j] ?? 0) + v[i]! * k[j]!;
    }
    if (!early) out[i] = dot(row, 0, r, 0, dim);
  }
}
