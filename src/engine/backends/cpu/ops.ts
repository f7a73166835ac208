/**
 * The definition of each step: the reference that every other backend is compared with. Simple loops, sums in float64,
 * activations in float32; results do not depend on batching, so the same tokens give the same bits in any division.
 */
import { AppError, assert } from "../../../base/index.ts";
import { rotateHead, rotateHeadBySections } from "../../program/rope.ts";
import type { Ops, Step } from "../../program/step.ts";
import { attentionOps } from "./attention.ts";
import { chooseOps } from "./choose.ts";
import { compressedOps } from "./compressed.ts";
import { activateAll, activations, dot, gateInPlace, matmul, vector, wholeWeight } from "./math.ts";
import { memoryOps } from "./memory.ts";
import { moe } from "./moe.ts";
import { madeLike, type Matrix, type Pass } from "./pass.ts";
import { recurrentOps } from "./recurrent.ts";
import { streamOps } from "./streams.ts";

export function runStep(step: Step, pass: Pass): void {
  // TypeScript cannot see that ops[step.op] takes the step it was indexed by.
  (ops[step.op] as (step: Step, pass: Pass) => void)(step, pass);
}

const ops: Ops<void, Pass> = {
  ...attentionOps,
  ...chooseOps,
  ...compressedOps,
  ...recurrentOps,
  ...streamOps,
  ...memoryOps,
  moe,

  embed({ out, table, scale, vectorToken }, pass) {
    const y = pass.make(out, pass.tokens.length);
    let vectors = 0;
    for (let r = 0; r < y.rows; r++) {
      const token = pass.tokens[r]!;
      const asVector = token === -1;
      if (asVector && vectorToken === undefined) {
        const at = vectors++ * pass.vectorDim;
        y.data.set(pass.vectors.subarray(at, at + y.dim), r * y.dim);
        continue;
      }
      const id = asVector ? vectorToken! : token;
      if (id < 0 || id >= table.outDim) {
        throw new AppError("bad_request", `token ${id}: expected an id of 0 … ${table.outDim - 1}`);
      }
      const row = pass.weights.row(table, id);
      for (let i = 0; i < y.dim; i++) y.data[r * y.dim + i] = row[i]! * scale;
    }
  },

  lookup({ out, values }, pass) {
    const y = pass.make(out, pass.tokens.length);
    for (let r = 0; r < y.rows; r++) {
      const from = Math.max(0, pass.tokens[r]!) * y.dim;
      assert(from < values.length, `token ${pass.tokens[r]} of ${values.length / y.dim}`);
      y.data.set(values.subarray(from, from + y.dim), r * y.dim);
    }
  },

  input({ out }, pass) {
    const y = pass.make(out, pass.tokens.length);
    assert(pass.input.length === y.rows * y.dim, `input of ${pass.input.length} values for ${y.rows} rows of ${y.dim}`);
    y.data.set(pass.input);
  },

  rmsNorm({ out, x, w, eps }, pass) {
    const [input, y] = [pass.get(x), madeLike(pass, out, x)];
    const weight = wholeWeight(w, pass); // one row per run, cyclically
    for (let at = 0; at < input.rows * input.dim; at += w.inDim) {
      const inverse = inverseRms(input.data, { at, run: w.inDim, eps });
      const first = (((at % input.dim) / w.inDim) % w.outDim) * w.inDim;
      for (let i = 0; i < w.inDim; i++) y.data[at + i] = input.data[at + i]! * inverse * weight[first + i]!;
    }
  },

  bareRmsNorm({ out, x, run, eps }, pass) {
    const [input, y] = [pass.get(x), madeLike(pass, out, x)];
    for (let at = 0; at < input.rows * input.dim; at += run) {
      const inverse = inverseRms(input.data, { at, run, eps });
      for (let i = at; i < at + run; i++) y.data[i] = input.data[i]! * inverse;
    }
  },

  l2Norm({ out, x, run, eps }, pass) {
    const [input, y] = [pass.get(x), madeLike(pass, out, x)];
    for (let at = 0; at < input.rows * input.dim; at += run) {
      const inverse = 1 / Math.sqrt(dot(input.data, at, input.data, at, run) + eps);
      for (let i = at; i < at + run; i++) y.data[i] = input.data[i]! * inverse;
    }
  },

  layerNorm({ out, x, w, b, eps }, pass) {
    const [input, y] = [pass.get(x), madeLike(pass, out, x)];
    const [weight, bias] = [wholeWeight(w, pass), b && wholeWeight(b, pass)];
    for (let at = 0; at < input.rows * input.dim; at += w.inDim) {
      const { mean, inverse } = momentsOf(input.data, { at, run: w.inDim, eps });
      const first = (((at % input.dim) / w.inDim) % w.outDim) * w.inDim;
      for (let i = 0; i < w.inDim; i++) {
        y.data[at + i] = (input.data[at + i]! - mean) * inverse * weight[first + i]! + (bias?.[first + i] ?? 0);
      }
    }
  },

  bareLayerNorm({ out, x, eps }, pass) {
    const [input, y] = [pass.get(x), madeLike(pass, out, x)];
    for (let at = 0; at < input.rows * input.dim; at += input.dim) {
      const { mean, inverse } = momentsOf(input.data, { at, run: input.dim, eps });
      for (let i = at; i < at + input.dim; i++) y.data[i] = (input.data[i]! - mean) * inverse;
    }
  },

  linear({ out, x, w, b }, pass) {
    matmul(pass.make(out, pass.get(x).rows), pass.get(x), { w, b }, pass);
  },

  headLinear({ out, x, w, transposed }, pass) {
    const input = pass.get(x);
    const y = pass.make(out, input.rows);
    const [from, to] = transposed ? [w.outDim, w.inDim] : [w.inDim, w.outDim];
    for (let head = 0; head < w.experts; head++) {
      const panel = wholeWeight(w, pass, head);
      for (let r = 0; r < y.rows; r++) {
        const [source, target] = [r * input.dim + head * from, r * y.dim + head * to];
        for (let o = 0; o < to; o++) {
          let sum = 0;
          for (let i = 0; i < from; i++)
            sum += panel[transposed ? i * to + o : o * from + i]! * input.data[source + i]!;
          y.data[target + o] = sum;
        }
      }
    }
  },

  rope({ x, heads, headDim, rope, at: first = 0 }, pass) {
    const y = pass.get(x);
    const table = pass.ropes.get(rope);
    assert(table, "a rope without its table");
    for (let r = 0; r < y.rows; r++) {
      const own = pass.positions.subarray(3 * r, 3 * r + 3);
      for (let h = 0; h < heads; h++) {
        const at = r * y.dim + h * headDim + first;
        if (rope.sections) rotateHeadBySections(y.data, at, table, own, rope);
        else rotateHead(y.data, at, table, own[0]!, rope);
      }
    }
  },

  mlp({ out, x, act, up, upB, down, downB }, pass) {
    const input = pass.get(x);
    const inner = pass.make({ name: "mlp.inner", dim: up.outDim }, input.rows);
    matmul(inner, input, { w: up, b: upB }, pass);
    activateAll(inner, act);
    matmul(pass.make(out, input.rows), inner, { w: down, b: downB }, pass);
  },

  gatedMlp({ out, x, act, limit, ...w }, pass) {
    const input = pass.get(x);
    const gate = pass.make({ name: "gatedMlp.gate", dim: w.gate.outDim }, input.rows);
    const up = pass.make({ name: "gatedMlp.up", dim: w.up.outDim }, input.rows);
    matmul(gate, input, { w: w.gate, b: w.gateB }, pass);
    matmul(up, input, { w: w.up, b: w.upB }, pass);
    gateInPlace(up, gate, { act, limit });
    matmul(pass.make(out, input.rows), up, { w: w.down, b: w.downB }, pass);
  },

  multiply({ out, a, b, act }, pass) {
    const [left, right] = [pass.get(a), pass.get(b)];
    const activate = act ? activations[act] : (value: number): number => value;
    const each = left.dim / right.dim;
    const products = Float32Array.from({ length: left.rows * left.dim }, (_, i) => {
      return left.data[i]! * activate(right.data[Math.floor(i / each)]!);
    });
    pass.make(out, left.rows).data.set(products);
  },

  activate: ({ x, act }, pass) => activateAll(pass.get(x), act),

  clamp({ x, min, max }, pass) {
    const y = pass.get(x);
    for (let i = 0; i < y.rows * y.dim; i++) y.data[i] = Math.max(min, Math.min(y.data[i]!, max));
  },

  slice({ out, x, heads, at }, pass) {
    const input = pass.get(x);
    const y = pass.make(out, input.rows);
    const [from, to] = [input.dim / heads, y.dim / heads];
    for (let h = 0; h < input.rows * heads; h++) {
      y.data.set(input.data.subarray(h * from + at, h * from + at + to), h * to);
    }
  },

  join({ out, a, b, heads }, pass) {
    const [left, right] = [pass.get(a), pass.get(b)];
    const y = pass.make(out, left.rows);
    const [first, second] = [left.dim / heads, right.dim / heads];
    for (let h = 0; h < left.rows * heads; h++) {
      y.data.set(left.data.subarray(h * first, (h + 1) * first), h * (first + second));
      y.data.set(right.data.subarray(h * second, (h + 1) * second), h * (first + second) + first);
    }
  },

  add({ out, a, b, scale }, pass) {
    const [left, right] = [pass.get(a), pass.get(b)];
    const y = out.name === a.name ? left : out.name === b.name ? right : pass.make(out, left.rows);
    for (let i = 0; i < y.rows * y.dim; i++) y.data[i] = left.data[i]! + right.data[i]! * scale;
  },

  positionScale({ x, coef, floorScale, offset }, pass) {
    const y = pass.get(x);
    for (let r = 0; r < y.rows; r++) {
      const factor = 1 + coef * Math.log(Math.floor((pass.positions[3 * r]! + offset) / floorScale) + 1);
      for (let i = r * y.dim; i < (r + 1) * y.dim; i++) y.data[i]! *= factor;
    }
  },

  addPosition({ x, table }, pass) {
    const y = pass.get(x);
    for (let r = 0; r < y.rows; r++) {
      const position = pass.positions[3 * r]!;
      assert(position < table.outDim, `position ${position} of ${table.outDim}`);
      const row = pass.weights.panel(table, { expert: 0, first: position, count: 1 });
      for (let i = 0; i < y.dim; i++) y.data[r * y.dim + i]! += row[i]!;
    }
  },

  addVector({ x, w }, pass) {
    const y = pass.get(x);
    const values = vector(w, pass);
    for (let i = 0; i < y.rows * y.dim; i++) y.data[i]! += values[i % y.dim]!;
  },

  addGiven({ x, at }, pass) {
    const y = pass.get(x);
    let vectors = 0;
    for (let r = 0; r < y.rows; r++) {
      if (pass.tokens[r] !== -1) continue;
      const from = vectors++ * pass.vectorDim + at;
      for (let i = 0; i < y.dim; i++) y.data[r * y.dim + i]! += pass.vectors[from + i]!;
    }
  },

  multiplyVector({ x, w, divide = false }, pass) {
    const y = pass.get(x);
    const values = vector(w, pass);
    const each = y.dim / w.inDim;
    for (let i = 0; i < y.rows * y.dim; i++) {
      const value = values[Math.floor((i % y.dim) / each)]!;
      y.data[i] = divide ? y.data[i]! / value : y.data[i]! * value;
    }
  },

  matchLength({ x, like }, pass) {
    const [y, other] = [pass.get(x), pass.get(like)];
    for (let r = 0; r < y.rows; r++) {
      const lengthOf = ({ data, dim }: Matrix): number => Math.sqrt(dot(data, r * dim, data, r * dim, dim));
      const factor = lengthOf(other) / lengthOf(y);
      for (let i = r * y.dim; i < (r + 1) * y.dim; i++) y.data[i]! *= factor;
    }
  },

  keepLargest({ x, factor }, pass) {
    const y = pass.get(x);
    for (let r = 0; r < y.rows; r++) {
      const values = y.data.subarray(r * y.dim, (r + 1) * y.dim);
      const mean = values.reduce((sum, value) => sum + value, 0) / y.dim;
      const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
      const least = mean + factor * Math.sqrt(squares / (y.dim - 1));
      for (const [i, value] of values.entries()) values[i] = Math.max(0, value - least);
    }
  },

  takeRows({ out, x }, pass) {
    const input = pass.get(x);
    const y = pass.make(out, pass.wanted.length);
    for (let r = 0; r < y.rows; r++) {
      const at = pass.wanted[r]! * y.dim;
      y.data.set(input.data.subarray(at, at + y.dim), r * y.dim);
    }
  },

  softCap({ x, cap }, pass) {
    const y = pass.get(x);
    for (let i = 0; i < y.rows * y.dim; i++) y.data[i] = cap * Math.tanh(y.data[i]! / cap);
  },

  scale({ x, by }, pass) {
    const y = pass.get(x);
    for (let i = 0; i < y.rows * y.dim; i++) y.data[i]! *= by;
  },
};

interface Run {
  readonly at: number;
  readonly run: number;
  readonly eps: number;
}

/** 1 / sqrt(mean(x²) + eps) of a run of values. */
const inverseRms = (data: Float32Array, { at, run, eps }: Run): number => {
  let squares = 0;
  for (let i = at; i < at + run; i++) squares += data[i]! * data[i]!;
  return 1 / Math.sqrt(squares / run + eps);
};

/** Mean, and 1 / sqrt(variance + eps), of a run of values. */
function momentsOf(data: Float32Array, { at, run, eps }: Run): { mean: number; inverse: number } {
  const values = data.subarray(at, at + run);
  const mean = values.reduce((sum, value) => sum + value, 0) / run;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / run;
  return { mean, inverse: 1 / Math.sqrt(variance + eps) };
}
