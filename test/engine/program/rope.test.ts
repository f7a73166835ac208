/** Rotation tables against the formulas of the papers, computed here in float64. */
import { expect, test } from "bun:test";
import { ropeMagnitude, ropeShift, ropeTable, rotateHead, type RopeTable } from "../../../src/engine/program/rope.ts";
import type { RopeScaling } from "../../../src/engine/program/step.ts";

const plain: RopeScaling = {
  base: 10_000,
  rotaryDim: 8,
  style: "norm",
  freqScale: 1,
  extFactor: 0,
  attnFactor: 1,
  betaFast: 32,
  betaSlow: 1,
  ctxLenOrig: 4096,
};

function wholeTable(rope: RopeScaling, ctxLen: number): RopeTable {
  const table = ropeTable(rope, ctxLen);
  table.reach(ctxLen);
  return table;
}

test("a table grows to any requested position, and no further than the context", () => {
  const whole = wholeTable(plain, 1000);
  const table = ropeTable(plain, 1000);
  expect(table.cos.every((value) => value === 0)).toBe(true);
  const pairs = plain.rotaryDim / 2;
  for (const end of [1, 256, 257, 300, 10, 999, 1000, 5000]) {
    table.reach(end);
    const upTo = Math.min(end, 1000) * pairs;
    expect(table.cos.subarray(0, upTo)).toEqual(whole.cos.subarray(0, upTo));
    expect(table.sin.subarray(0, upTo)).toEqual(whole.sin.subarray(0, upTo));
  }
});

/** Largest difference between a table and angles given by position and pair. */
function worst(rope: RopeScaling, ctxLen: number, angle: (position: number, pair: number) => number, magnitude = 1) {
  const { cos, sin } = wholeTable(rope, ctxLen);
  const pairs = rope.rotaryDim / 2;
  expect(cos.length).toBe(ctxLen * pairs);
  let worst = 0;
  for (let p = 0; p < ctxLen; p++) {
    for (let i = 0; i < pairs; i++) {
      const theta = angle(p, i);
      worst = Math.max(worst, Math.abs(cos[p * pairs + i]! - magnitude * Math.cos(theta)));
      worst = Math.max(worst, Math.abs(sin[p * pairs + i]! - magnitude * Math.sin(theta)));
    }
  }
  return worst;
}

const frequency = (rope: RopeScaling, pair: number): number => rope.base ** ((-2 * pair) / rope.rotaryDim);

test("angles are position times base to the power of -2i/d", () => {
  expect(worst(plain, 100, (p, i) => p * frequency(plain, i))).toBeLessThan(2e-5);
});

test("linear scaling divides every angle by the factor", () => {
  const rope = { ...plain, freqScale: 1 / 8, base: 500_000 };
  expect(worst(rope, 100, (p, i) => (p / 8) * frequency(rope, i))).toBeLessThan(2e-6);
});

test("frequency factors divide the angle of their pair", () => {
  const rope = { ...plain, freqFactors: Float32Array.of(1, 2, 4, 8) };
  expect(worst(rope, 50, (p, i) => (p * frequency(rope, i)) / 2 ** i)).toBeLessThan(1e-5);
});

test("the long factors apply only to a context longer than the original one", () => {
  const rope = {
    ...plain,
    ctxLenOrig: 50,
    freqFactors: Float32Array.of(1, 2, 4, 8),
    freqFactorsLong: Float32Array.of(3, 3, 3, 3),
    attnFactor: 1.19,
  };
  expect(worst(rope, 50, (p, i) => (p * frequency(rope, i)) / 2 ** i, 1.19)).toBeLessThan(1e-5);
  expect(worst(rope, 51, (p, i) => (p * frequency(rope, i)) / 3, 1.19)).toBeLessThan(1e-5);
});

test("YaRN keeps fast pairs, interpolates slow ones, and blends the pairs between", () => {
  const rope = { ...plain, rotaryDim: 32, base: 10_000, freqScale: 1 / 4, extFactor: 1, ctxLenOrig: 2048 };
  // arXiv:2309.00071, section 3.2: the dimension that turns r times within the original context.
  const dimOf = (r: number) => (32 * Math.log(2048 / (2 * Math.PI * r))) / (2 * Math.log(10_000));
  const [low, high] = [Math.floor(dimOf(32)), Math.ceil(dimOf(1))];
  expect([low, high]).toEqual([4, 11]);
  const angle = (p: number, i: number): number => {
    const keep = 1 - Math.min(1, Math.max(0, (i - low) / (high - low)));
    return p * frequency(rope, i) * (keep + (1 - keep) / 4);
  };
  expect(worst(rope, 64, angle, 1 + 0.1 * Math.log(4))).toBeLessThan(2e-5);
});

test("a negative ramp, as in a tiny context, gives finite numbers", () => {
  const rope = { ...plain, freqScale: 0.5, extFactor: 1, ctxLenOrig: 1 };
  expect(wholeTable(rope, 4).cos.every(Number.isFinite)).toBe(true);
});

for (const style of ["norm", "neox"] as const) {
  test(`${style}: a head is rotated pair by pair, and values beyond the rotary dimensions stay`, () => {
    const rope = { ...plain, style, rotaryDim: 4 };
    const table = wholeTable(rope, 8);
    const x = Float32Array.of(9, 9, 1, 2, 3, 4, 5, 6);
    rotateHead(x, 2, table, 7, rope);
    const turn = (a: number, b: number, theta: number) => [
      a * Math.cos(theta) - b * Math.sin(theta),
      a * Math.sin(theta) + b * Math.cos(theta),
    ];
    const [fast, slow] = [7, 7 / 100];
    const [a, b] = style === "norm" ? [turn(1, 2, fast), turn(3, 4, slow)] : [turn(1, 3, fast), turn(2, 4, slow)];
    const expected = style === "norm" ? [...a, ...b] : [a[0]!, b[0]!, a[1]!, b[1]!];
    [9, 9, ...expected, 5, 6].forEach((value, i) => expect(x[i]).toBeCloseTo(value, 5));
  });
}

test("a shift turns a rotated key to its new position, whatever its magnitude", () => {
  const rope = { ...plain, freqScale: 0.5, extFactor: 1, ctxLenOrig: 32, attnFactor: 0.8, style: "neox" as const };
  const table = wholeTable(rope, 64);
  const key = Float32Array.from({ length: 8 }, (_, i) => i - 3.5);
  const [there, here] = [key.slice(), key.slice()];
  rotateHead(there, 0, table, 50, rope);
  rotateHead(here, 0, table, 20, rope);
  rotateHead(there, 0, ropeShift(rope, { discard: 30, ctxLen: 64 }), 0, rope);
  there.forEach((value, i) => expect(value).toBeCloseTo(here[i]!, 4));
  expect(ropeMagnitude(rope)).toBeCloseTo(0.8 * (1 + 0.1 * Math.log(2)), 6);
});
