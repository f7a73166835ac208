import { expect, test } from "bun:test";
import { makeRng, makeXoshiro128, randomSeed } from "../../../src/engine/text/rng.ts";

test("xoshiro128** gives its reference implementation's numbers", () => {
  const rng = makeXoshiro128(Uint32Array.of(1, 2, 3, 4));
  expect([1, 2, 3, 4].map(() => rng.uint32())).toEqual([11520, 0, 5927040, 70819200]);
});

test("a float has 27 bits of one draw above 26 bits of the next", () => {
  const rng = makeXoshiro128(Uint32Array.of(1, 2, 3, 4));
  const halves = (high: number, low: number): number => ((high >>> 5) * 2 ** 26 + (low >>> 6)) / 2 ** 53;
  expect([rng.float(), rng.float()]).toEqual([halves(11520, 0), halves(5927040, 70819200)]);
});

test("a seed always gives the same numbers, and nearby seeds give other numbers", () => {
  const first = (seed: number): number[] => {
    const rng = makeRng(seed);
    return [rng.uint32(), rng.uint32(), rng.uint32()];
  };
  expect(first(42)).toEqual(first(42));
  const seeds = [0, 1, 2, 42, 43, 2 ** 32, 2 ** 32 + 1, 2 ** 33, 2 ** 52, -1];
  expect(new Set(seeds.map((seed) => first(seed).join())).size).toBe(seeds.length);
});

test("floats lie in [0, 1), use 53 bits and are spread evenly", () => {
  const rng = makeRng(7);
  const bins = Array.from({ length: 16 }, () => 0);
  let fine = 0;
  for (let i = 0; i < 16_000; i++) {
    const x = rng.float();
    expect(x >= 0 && x < 1).toBe(true);
    bins[Math.floor(x * 16)]!++;
    if ((x * 2 ** 53) % 2 === 1) fine++;
  }
  const chi2 = bins.reduce((sum, count) => sum + (count - 1000) ** 2 / 1000, 0);
  expect(chi2).toBeLessThan(37.7); // 15 degrees of freedom, p = 0.001
  expect(fine).toBeGreaterThan(7_000); // the lowest bit is set half of the time
});

test("random seeds differ", () => {
  expect(new Set(Array.from({ length: 8 }, randomSeed)).size).toBeGreaterThan(6);
});
