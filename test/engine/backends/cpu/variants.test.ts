/** Ops and variants of few architectures, each against a second computation that shares no code with the reference. */
import { test } from "bun:test";
import type { Buf, Step, Weight } from "../../../../src/engine/program/step.ts";
import { expectAll, run } from "./one-step.ts";

const rows = [
  [0.3, -1, 2, 0.5],
  [1, 1, -1, 0],
  [0, 2, 0.5, -2],
  [-1, 0.5, 1, 1],
];
const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));
const softplus = (x: number): number => Math.log(1 + Math.exp(x));
const buf = (name: string, dim: number): Buf => ({ name, dim });
/** Splits columns of x into separate buffers. */
const cut = (x: Buf, ...parts: readonly (readonly [string, number, number])[]): { bufs: Buf[]; steps: Step[] } => {
  const bufs = parts.map(([name, , count]) => buf(name, count));
  return { bufs, steps: bufs.map((out, i) => ({ op: "slice", out, x, heads: 1, at: parts[i]![1] })) };
};

test("causalConv weighs the rows before each row, the last tap the row itself", async () => {
  let [w, b]: (Weight | undefined)[] = [];
  const { got, valuesOf } = await run(rows, ({ matrix, vector }, x) => {
    [w, b] = [matrix({ inDim: 3, outDim: 4 }), vector(4)];
    return { steps: [{ op: "causalConv", out: x, x, w, b, act: "relu", layer: 0 }], out: x };
  });
  const [taps, bias] = [valuesOf(w!), valuesOf(b!)];
  const at = (r: number, c: number): number => rows[r]?.[c] ?? 0;
  expectAll(
    got,
    rows.flatMap((_, r) =>
      bias.map((each, c) =>
        Math.max(0, each + [0, 1, 2].reduce((sum, j) => sum + taps[c * 3 + j]! * at(r - 2 + j, c), 0)),
      ),
    ),
  );
});

test("deltaRule decays a state, corrects its value for the key, and reads it by the query", async () => {
  let [a, dt]: (Weight | undefined)[] = [];
  const { got, valuesOf } = await run(rows, ({ vector }, x) => {
    [a, dt] = [vector(2, { mean: -0.5 }), vector(2)];
    const { bufs, steps } = cut(x, ["q", 0, 2], ["k", 1, 2], ["v", 0, 4], ["alpha", 2, 2], ["beta", 0, 2]);
    const [q, k, v, alpha, beta] = bufs as [Buf, Buf, Buf, Buf, Buf]; // one per part
    const out = buf("out", 4);
    const shape = { layer: 0, nHeads: 2, nKeyHeads: 1, headDim: 2, heads: "modulo", scale: 0.5 } as const;
    return { steps: [...steps, { op: "deltaRule", out, q, k, v, alpha, beta, a, dt, ...shape }], out };
  });
  const [rates, biases] = [valuesOf(a!), valuesOf(dt!)];
  const states = [0, 1].map(() => [
    [0, 0],
    [0, 0],
  ]);
  const expected = rows.flatMap((x) =>
    states.flatMap((m, h) => {
      const [q, k, v] = [x.slice(0, 2), x.slice(1, 3), x.slice(2 * h, 2 * h + 2)];
      const decay = Math.exp(rates[h]! * softplus(x[2 + h]! + biases[h]!));
      const known = m.map((row) => decay * (row[0]! * k[0]! + row[1]! * k[1]!));
      const beta = sigmoid(x[h]!);
      return m.map((row, i) => {
        for (let j = 0; j < 2; j++) row[j] = decay * row[j]! + beta * (v[i]! - known[i]!) * k[j]!;
        return 0.5 * (row[0]! * q[0]! + row[1]! * q[1]!);
      });
    }),
  );
  expectAll(got, expected);
});

test("selectiveScan decays a state by its time step, adds x times B, and reads it by C", async () => {
  let [a, d, dtB]: (Weight | undefined)[] = [];
  const { got, valuesOf } = await run(rows, ({ vector }, x) => {
    [a, d, dtB] = [vector(2, { mean: -1 }), vector(2, { mean: 1 }), vector(2)];
    const { bufs, steps } = cut(x, ["v", 0, 4], ["dt", 2, 2], ["b", 0, 2], ["c", 1, 2]);
    const [values, dt, b, c] = bufs as [Buf, Buf, Buf, Buf]; // one per part
    const out = buf("out", 4);
    const shape = { layer: 0, nHeads: 2, headDim: 2, stateDim: 2, nGroups: 1 };
    const perHead = { ...a, inDim: 1, outDim: 2, tensorRows: 2 };
    return { steps: [...steps, { op: "selectiveScan", out, x: values, dt, dtB, b, c, a: perHead, d, ...shape }], out };
  });
  const [rates, skips, biases] = [valuesOf(a!), valuesOf(d!), valuesOf(dtB!)];
  const state = Array.from({ length: 4 }, () => [0, 0]);
  const expected = rows.flatMap((x) =>
    state.map((own, i) => {
      const h = i < 2 ? 0 : 1;
      const delta = softplus(x[2 + h]! + biases[h]!);
      for (let n = 0; n < 2; n++) own[n] = own[n]! * Math.exp(delta * rates[h]!) + delta * x[i]! * x[n]!;
      return own[0]! * x[1]! + own[1]! * x[2]! + skips[h]! * x[i]!;
    }),
  );
  expectAll(got, expected);
});

test("previousRow is the row before each row, zeros before the first", async () => {
  const { got } = await run(rows, (_, x) => {
    const out = buf("out", 4);
    return { steps: [{ op: "previousRow", out, x, layer: 0 }], out };
  });
  expectAll(got, [[0, 0, 0, 0], ...rows.slice(0, -1)].flat());
});

type Wkv = Extract<Step, { op: "wkv" }>;

/** Columns of x as r (0 …), w (2 …), k and v (of one head for two), a and b. */
async function remember(more: Partial<Wkv>, removes = false): Promise<number[]> {
  const { got } = await run(rows, (_, x) => {
    const parts = [
      ["r", 0, 4],
      ["w", 0, 4],
      ["k", 2, 2],
      ["v", 1, 2],
    ] as const;
    const { bufs, steps } = cut(x, ...parts);
    const [r, w, k, v] = bufs as [Buf, Buf, Buf, Buf]; // one per part
    const out = buf("out", 4);
    const shape = { layer: 0, nHeads: 2, nKeyHeads: 1, headDim: 2, ...(removes && { a: w, b: r }) };
    return { steps: [...steps, { op: "wkv", out, r, w, k, v, ...shape, ...more }], out };
  });
  return got;
}

/** The same by the definition, with S as a list of (value, key) products. */
function remembered(decayOf: (rate: number) => number, { early = false, complement = false, removes = false }) {
  const states = [0, 1].map(() => [0, 0, 0, 0]);
  return rows.flatMap((x) =>
    states.flatMap((s, h) => {
      const [own, k, v] = [x.slice(2 * h, 2 * h + 2), x.slice(2, 4), x.slice(1, 3)];
      const read = (): number[] => [s[0]! * own[0]! + s[1]! * own[1]!, s[2]! * own[0]! + s[3]! * own[1]!];
      const before = read(); // r, w, a and b are the same columns here
      s.forEach((held, at) => {
        const [i, j] = [Math.floor(at / 2), at % 2] as const;
        const g = decayOf(own[j]!);
        const key = complement ? (1 - g) * k[j]! : k[j]!;
        s[at] = held * g - (removes ? before[i]! * own[j]! : 0) + v[i]! * key;
      });
      return early ? before : read();
    }),
  );
}

test("wkv decays a state by exp(−exp(w)), and reads it before or after the row", async () => {
  const decay = (rate: number): number => Math.exp(-Math.exp(rate));
  expectAll(await remember({}), remembered(decay, {}));
  expectAll(await remember({ early: true }), remembered(decay, { early: true }));
  expectAll(await remember({ complement: true }), remembered(decay, { complement: true }));
});

test("wkv with a bound removes the state's value for a", async () => {
  const decay = (rate: number): number => Math.exp(-0.6 * sigmoid(rate));
  expectAll(await remember({ bound: -0.6 }, true), remembered(decay, { removes: true }));
});

const heads = { layer: 0, nHeads: 2, nKvHeads: 1, headDim: 2, scale: 0.7, window: 0, softCap: 0, rope: undefined };

/** Attention of both halves of each row as queries over its first half as key and value. */
async function attend(more: Partial<Extract<Step, { op: "attention" }>>, sinks = false) {
  let weights: Weight | undefined;
  const { got, valuesOf } = await run(rows, ({ vector }, x) => {
    weights = vector(2, { mean: 1 });
    const { bufs, steps } = cut(x, ["k", 0, 2], ["v", 0, 2]);
    const [k, v] = bufs as [Buf, Buf]; // one per part
    const out = buf("out", 4);
    const step: Step = { op: "attention", out, q: x, k, v, ...heads, ...more, ...(sinks && { sinks: weights }) };
    return { steps: [...steps, step], out };
  });
  return { got, sinks: valuesOf(weights!) };
}

/** @param extra added to a score; −Infinity for an invisible row */
const attended = (extra: (head: number, r: number, t: number) => number, sinks: readonly number[] = []): number[] =>
  rows.flatMap((x, r) =>
    [0, 1].flatMap((head) => {
      const shares = rows.slice(0, r + 1).map((past, t) => {
        const score = 0.7 * (x[2 * head]! * past[0]! + x[2 * head + 1]! * past[1]!);
        return Math.exp(score + extra(head, r, t));
      });
      const total = shares.reduce((a, b) => a + b, 0) + (sinks.length > 0 ? Math.exp(sinks[head]!) : 0);
      return [0, 1].map((i) => shares.reduce((sum, share, t) => sum + share * rows[t]![i]!, 0) / total);
    }),
  );

test("a sink takes part in the softmax and has no value", async () => {
  const { got, sinks } = await attend({}, true);
  expectAll(
    got,
    attended(() => 0, sinks),
  );
});

test("ALiBi subtracts its head's slope times the distance from a score", async () => {
  const { got } = await attend({ alibi: 8 });
  expectAll(
    got,
    attended((head, r, t) => -(2 ** (-4 * (head + 1))) * (r - t)),
  );
});

test("a row of chunked attention sees rows of its own chunk only", async () => {
  const { got } = await attend({ chunked: true, window: 2 });
  expectAll(
    got,
    attended((_, r, t) => (Math.floor(t / 2) === Math.floor(r / 2) ? 0 : -Infinity)),
  );
});

test("attention over a shared cache, and over a latent one with the same values, equals plain attention", async () => {
  const { got: plain } = await attend({});
  const { got: shared } = await run(rows, (_, x) => {
    const { bufs, steps } = cut(x, ["k", 0, 2], ["v", 0, 2]);
    const [k, v] = bufs as [Buf, Buf]; // one per part
    const [first, out] = [buf("first", 4), buf("out", 4)];
    const { rope: _rope, ...shape } = heads;
    steps.push(
      { op: "attention", out: first, q: x, k, v, ...heads },
      { op: "sharedAttention", out, q: x, ...shape, layer: 1, source: 0 },
    );
    return { steps, out };
  });
  expectAll(shared, plain);
  const { got: latent } = await run(rows, (_, x) => {
    const { bufs, steps } = cut(x, ["k", 0, 2]);
    const out = buf("out", 4);
    const { nKvHeads: _n, window: _w, softCap: _s, ...shape } = heads;
    return { steps: [...steps, { op: "latentAttention", out, q: x, k: bufs[0]!, ...shape, valueDim: 2 }], out };
  });
  expectAll(latent, plain);
});

test("headLinear multiplies each head by its own matrix, or by the transpose of that matrix", async () => {
  for (const transposed of [false, true]) {
    let w: Weight | undefined;
    const { got, valuesOf } = await run(rows, ({ matrix }, x) => {
      w = matrix({ inDim: 2, outDim: 2, experts: 2 });
      const out = buf("out", 4);
      return { steps: [{ op: "headLinear", out, x, w, transposed }], out };
    });
    const m = valuesOf(w!);
    const cell = (head: number, o: number, i: number): number => m[head * 4 + (transposed ? i * 2 + o : o * 2 + i)]!;
    expectAll(
      got,
      rows.flatMap((x) =>
        [0, 1].flatMap((head) =>
          [0, 1].map((o) => cell(head, o, 0) * x[2 * head]! + cell(head, o, 1) * x[2 * head + 1]!),
        ),
      ),
    );
  }
});

test("multiply, join, slice, clamp, activate and the norms without weights follow their formulas", async () => {
  const { got } = await run(rows, (_, x) => {
    const { bufs, steps } = cut(x, ["a", 0, 2], ["b", 3, 1]);
    const [a, b] = bufs as [Buf, Buf]; // one per part
    const [product, out] = [buf("product", 2), buf("out", 4)];
    steps.push(
      { op: "multiply", out: product, a, b, act: "sigmoid" },
      { op: "join", out, a: product, b: a, heads: 2 },
      { op: "clamp", x: out, min: -0.6, max: 0.6 },
      { op: "activate", x: out, act: "tanh" },
    );
    return { steps, out };
  });
  const limited = (value: number): number => Math.tanh(Math.max(-0.6, Math.min(0.6, value)));
  expectAll(
    got,
    rows.flatMap(([a, b, , d]) => [a! * sigmoid(d!), a!, b! * sigmoid(d!), b!].map(limited)),
  );
  const normed = await run([[3, 4, 0, 2]], (_, x) => {
    const [rms, l2] = [buf("rms", 4), buf("l2", 4)];
    const steps: Step[] = [
      { op: "bareRmsNorm", out: rms, x, run: 2, eps: 0.5 },
      { op: "l2Norm", out: l2, x, run: 2, eps: 5 },
      { op: "add", out: rms, a: rms, b: l2, scale: 10 },
    ];
    return { steps, out: rms };
  });
  const [root, length] = [
    (squares: number) => Math.sqrt(squares / 2 + 0.5),
    (squares: number) => Math.sqrt(squares + 5),
  ];
  expectAll(normed.got, [
    3 / root(25) + 30 / length(25),
    4 / root(25) + 40 / length(25),
    0,
    2 / root(4) + 20 / length(4),
  ]);
});
