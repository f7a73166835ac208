/** The reference backend's session: slots, chunks, shifts and failures. cpu/ops.test.ts tests its steps. */
import { describe, expect, test } from "bun:test";
import type { Program, Rows, Session } from "../../../src/engine/program/backend.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import type { Buf, RopeScaling, Step, Weight } from "../../../src/engine/program/step.ts";
import { AppError } from "../../../src/base/errors.ts";
import { makeRng } from "../../../src/engine/text/rng.ts";
import { makeWeightBox } from "../../conformance/weights.ts";

const VOCAB = 50;
const ROPE: RopeScaling = {
  base: 1000,
  rotaryDim: 8,
  style: "neox",
  freqScale: 1,
  extFactor: 0,
  attnFactor: 1,
  betaFast: 32,
  betaSlow: 1,
  ctxLenOrig: 64,
};

interface TinyOptions {
  readonly nLayers: number;
  readonly window?: number;
  readonly rope?: RopeScaling;
  /** Leaves the keys and queries of the last layer unrotated. */
  readonly lastUnrotated?: boolean;
}

/** A transformer of random weights: 4 heads of 8 on 2. */
function tinyModel({ nLayers, window = 0, rope = ROPE, lastUnrotated = false }: TinyOptions): Program {
  const dim = 32;
  const box = makeWeightBox("tiny", makeRng(7));
  const buf = (name: string, width: number): Buf => ({ name, dim: width });
  const [x, h, y] = [buf("x", dim), buf("h", dim), buf("y", dim)];
  const [q, k, v, heads] = [buf("q", 32), buf("k", 16), buf("v", 16), buf("heads", 32)];
  const [last, logits] = [buf("last", dim), buf("logits", VOCAB)];
  const matrix = (inDim: number, outDim: number): Weight => box.matrix({ inDim, outDim, size: 1.5 / Math.sqrt(inDim) });
  const attention = { nHeads: 4, nKvHeads: 2, headDim: 8, scale: 1 / Math.sqrt(8), window, softCap: 0 };
  const norm = (): Weight => box.vector(dim, { mean: 1 });
  const steps: Step[] = [{ op: "embed", out: x, table: matrix(dim, VOCAB), scale: 3 }];
  for (let layer = 0; layer < nLayers; layer++) {
    steps.push(
      { op: "rmsNorm", out: h, x, w: norm(), eps: 1e-5 },
      { op: "linear", out: q, x: h, w: matrix(dim, 32) },
      { op: "linear", out: k, x: h, w: matrix(dim, 16) },
      { op: "linear", out: v, x: h, w: matrix(dim, 16) },
    );
    const rotates = !lastUnrotated || layer < nLayers - 1;
    if (rotates) {
      steps.push({ op: "rope", x: q, heads: 4, headDim: 8, rope }, { op: "rope", x: k, heads: 2, headDim: 8, rope });
    }
    steps.push(
      { op: "attention", out: heads, q, k, v, layer, ...attention, rope: rotates ? rope : undefined },
      { op: "linear", out: y, x: heads, w: matrix(32, dim) },
      { op: "add", out: x, a: x, b: y, scale: 1 },
      { op: "rmsNorm", out: h, x, w: norm(), eps: 1e-5 },
      { op: "gatedMlp", out: y, x: h, gate: matrix(dim, 48), up: matrix(dim, 48), down: matrix(48, dim), act: "silu" },
      { op: "add", out: x, a: x, b: y, scale: 1 },
    );
  }
  steps.push(
    { op: "takeRows", out: last, x },
    { op: "rmsNorm", out: last, x: last, w: norm(), eps: 1e-5 },
    { op: "linear", out: logits, x: last, w: matrix(dim, VOCAB) },
  );
  return {
    shape: { arch: "tiny", dim, nLayers, vocabSize: VOCAB },
    steps,
    logits,
    states: last,
    weights: box.source,
  };
}

const load = (program: Program, slots = 3, ctxLen = 32): Promise<Session> =>
  cpuBackend.load(program, { ctxLen, slots, precise: true, threads: 1, cacheDir: undefined });

const TOKENS = Int32Array.from({ length: 32 }, (_, i) => (i * 17 + 5) % VOCAB);
const rowsOf = (slot: number, start: number, tokens: ArrayLike<number>, logits: Rows["logits"] = "all"): Rows => ({
  slot,
  start,
  tokens: Int32Array.from(tokens),
  logits,
});

/** Logits of every token of a sequence, in one run of a separate session. */
async function fresh(program: Program, tokens: ArrayLike<number>) {
  const session = await load(program, 1);
  return (await session.run([rowsOf(0, 0, tokens)])).slice();
}

const lastOf = (logits: Float32Array) => logits.slice(logits.length - VOCAB);

function expectClose(got: Float32Array, expected: Float32Array, abs: number): void {
  expect(got.length).toBe(expected.length);
  const worst = got.reduce((max, value, i) => Math.max(max, Math.abs(value - expected[i]!)), 0);
  expect(worst).toBeLessThanOrEqual(abs);
}

describe("sequences", () => {
  test("a sequence gives the same bits in chunks, token by token, in any slot and beside others", async () => {
    const program = tinyModel({ nLayers: 2 });
    const whole = await fresh(program, TOKENS.subarray(0, 20));
    const other = await fresh(program, TOKENS.subarray(12, 20));
    const session = await load(program);
    const got: number[] = [];
    const take = (logits: Float32Array, rows: number) => got.push(...logits.subarray(0, rows * VOCAB));
    take(await session.run([rowsOf(2, 0, TOKENS.subarray(0, 7))]), 7);
    await session.run([rowsOf(0, 0, TOKENS.subarray(12, 16), "none")]);
    take(await session.run([rowsOf(2, 7, TOKENS.subarray(7, 12)), rowsOf(0, 4, TOKENS.subarray(16, 19), "last")]), 5);
    for (let i = 12; i < 20; i++) {
      const both = i === 15 ? [rowsOf(0, 7, [TOKENS[19]!], "last")] : [];
      const logits = await session.run([rowsOf(2, i, [TOKENS[i]!]), ...both]);
      take(logits, 1);
      if (i === 15) expect(logits.slice(VOCAB)).toEqual(lastOf(other));
    }
    expect(Float32Array.from(got)).toEqual(whole);
  });

  test("a new sequence overwrites the cache of the earlier sequence in its slot", async () => {
    const program = tinyModel({ nLayers: 2 });
    const session = await load(program, 1);
    await session.run([rowsOf(0, 0, TOKENS, "none")]);
    const logits = await session.run([rowsOf(0, 0, TOKENS.subarray(9, 15))]);
    expect(logits).toEqual(await fresh(program, TOKENS.subarray(9, 15)));
  });

  test("a copied prefix continues in its new slot and leaves the old slot unchanged", async () => {
    const program = tinyModel({ nLayers: 2 });
    const session = await load(program);
    await session.run([rowsOf(0, 0, TOKENS.subarray(0, 10), "none"), rowsOf(1, 0, TOKENS.subarray(20, 30), "none")]);
    session.copy({ from: 0, to: 1, length: 6 });
    const moved = (await session.run([rowsOf(1, 6, TOKENS.subarray(20, 24), "last")])).slice();
    expect(moved).toEqual(lastOf(await fresh(program, [...TOKENS.subarray(0, 6), ...TOKENS.subarray(20, 24)])));
    const old = await session.run([rowsOf(0, 10, [TOKENS[10]!])]);
    expect(old).toEqual(lastOf(await fresh(program, TOKENS.subarray(0, 11))));
  });

  test("a run returns the logits of the requested rows only, in batch order", async () => {
    const program = tinyModel({ nLayers: 1 });
    const [first, second] = [await fresh(program, [1, 2, 3]), await fresh(program, [4, 5])];
    const session = await load(program);
    const batch = [rowsOf(2, 0, [1, 2, 3], "last"), rowsOf(1, 0, [7, 8], "none"), rowsOf(0, 0, [4, 5], "all")];
    expect([...(await session.run(batch))]).toEqual([...lastOf(first), ...second]);
    expect((await session.run([rowsOf(1, 2, [9], "none")])).length).toBe(0);
  });

  test("a run asserts the context length, the slot, one entry per slot and an open session", async () => {
    const session = await load(tinyModel({ nLayers: 1 }), 2, 8);
    await expect(session.run([rowsOf(0, 5, [1, 2, 3, 4])])).rejects.toThrow("slot 0: 5 + 4 of 8");
    await expect(session.run([rowsOf(2, 0, [1])])).rejects.toThrow("slot 2 of 2");
    await expect(session.run([rowsOf(1, 0, [1]), rowsOf(1, 1, [1])])).rejects.toThrow("twice");
    session.close();
    await expect(session.run([rowsOf(0, 0, [1])])).rejects.toThrow("closed");
  });

  test("a token beyond the vocabulary is refused by its id", async () => {
    const session = await load(tinyModel({ nLayers: 1 }));
    await expect(session.run([rowsOf(0, 0, [3, VOCAB])])).rejects.toThrow(`token ${VOCAB}: expected an id of 0 … 49`);
  });

  test("a cache beyond the limit is refused before it is allocated", async () => {
    const loading = load(tinyModel({ nLayers: 1 }), 64, 2 ** 24);
    await expect(loading).rejects.toThrow("KV cache of 64 × 16777216 tokens: expected at most");
  });
});

describe("context shift", () => {
  const rest = [...TOKENS.subarray(0, 4), ...TOKENS.subarray(11, 20)];
  const next = TOKENS[25]!;

  /** Logits of one more token after 20, of which 4 to 10 were dropped. */
  async function afterShift(program: Program): Promise<Float32Array> {
    const session = await load(program, 2);
    await session.run([rowsOf(1, 0, TOKENS.subarray(0, 20), "none"), rowsOf(0, 0, TOKENS, "none")]);
    session.shift(1, { keep: 4, discard: 7, length: 20 });
    return (await session.run([rowsOf(1, 13, [next])])).slice();
  }

  // The keys of the first layer depend only on their token and position, so a shift is exact there.
  const variants: [string, RopeScaling][] = [
    ["neox", ROPE],
    ["norm, a part of each head", { ...ROPE, style: "norm", rotaryDim: 6 }],
    ["YaRN", { ...ROPE, freqScale: 0.25, extFactor: 1, attnFactor: 0.9, ctxLenOrig: 16 }],
    ["frequency factors", { ...ROPE, freqFactors: Float32Array.of(1, 2, 4, 8) }],
    ["long frequency factors", { ...ROPE, ctxLenOrig: 16, freqFactorsLong: Float32Array.of(8, 4, 2, 1) }],
  ];
  for (const [name, rope] of variants) {
    test(`in a model of one layer, a shift equals a prefill of the remaining tokens: ${name}`, async () => {
      const program = tinyModel({ nLayers: 1, rope });
      const expected = lastOf(await fresh(program, [...rest, next]));
      expectClose(await afterShift(program), expected, 1e-4);
    });
  }

  for (const lastUnrotated of [false, true]) {
    const which = lastUnrotated ? ", also if a layer has no rotation" : "";
    test(`in a model of three layers, dropping tokens that no window reaches changes nothing${which}`, async () => {
      const program = tinyModel({ nLayers: 3, window: 5, lastUnrotated });
      const session = await load(program, 1);
      await session.run([rowsOf(0, 0, TOKENS.subarray(0, 20), "none")]);
      const expected = (await session.run([rowsOf(0, 20, [next])])).slice();
      session.shift(0, { keep: 0, discard: 12, length: 20 });
      expectClose(await session.run([rowsOf(0, 8, [next])]), expected, 1e-4);
    });
  }

  test("in a model of three layers, values still depend on the dropped tokens", async () => {
    const program = tinyModel({ nLayers: 3 });
    const anew = lastOf(await fresh(program, [...rest, next]));
    const shifted = await afterShift(program);
    expect(shifted.some((value, i) => Math.abs(value - anew[i]!) > 0.01)).toBe(true);
  });

  test("a shift changes no bit of the kept prefix and of other slots", async () => {
    const program = tinyModel({ nLayers: 3 });
    const session = await load(program, 2);
    await session.run([rowsOf(1, 0, TOKENS.subarray(0, 20), "none"), rowsOf(0, 0, TOKENS.subarray(0, 30), "none")]);
    session.shift(1, { keep: 4, discard: 7, length: 20 });
    const other = (await session.run([rowsOf(0, 30, [next])])).slice();
    expect(other).toEqual(lastOf(await fresh(program, [...TOKENS.subarray(0, 30), next])));
    const prefix = await session.run([rowsOf(1, 4, [next])]);
    expect(prefix).toEqual(lastOf(await fresh(program, [...TOKENS.subarray(0, 4), next])));
  });
});

describe("failures", () => {
  test("a NaN in a weight is an error that names the step and its tensors", async () => {
    const program = tinyModel({ nLayers: 2 });
    const broken = program.steps.filter(({ op }) => op === "gatedMlp")[1] as Step & { op: "gatedMlp" };
    const source: Program["weights"] = {
      path: "/models/broken.gguf",
      read: (name) => {
        const bytes = program.weights.read(name).slice();
        if (name === broken.down.name) new DataView(bytes.buffer).setUint32(8, 0x7fc00000, true);
        return bytes;
      },
    };
    const session = await load({ ...program, weights: source });
    const failure: unknown = await session.run([rowsOf(0, 0, [1, 2])]).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(AppError);
    expect((failure as AppError).code).toBe("runner");
    const index = program.steps.indexOf(broken);
    const tensors = [broken.gate, broken.up, broken.down].map(({ name }) => `'${name}'`).join(", ");
    expect((failure as AppError).message).toStartWith(
      `/models/broken.gguf: step ${index} (gatedMlp with ${tensors}): expected numbers, got NaN at row 0`,
    );
  });
});
