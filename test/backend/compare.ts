/** How logits of a backend are compared with those of the reference. */
import { expect } from "bun:test";

/** Σ (got − expected)² / Σ expected²; 0 where both are zeros. */
export function nmse(got: Float32Array, expected: Float32Array): number {
  expect(got.length).toBe(expected.length);
  let [error, power] = [0, 0];
  for (const [i, value] of expected.entries()) {
    error += (got[i]! - value) ** 2;
    power += value ** 2;
  }
  return error === 0 ? 0 : error / power;
}

/** Fails with the place and both values of the worst of those that are further apart than abs + rel · |expected|. */
export function expectClose(got: Float32Array, expected: Float32Array, options: { abs: number; rel: number }): void {
  expect(got.length).toBe(expected.length);
  let worst = { excess: 0, text: "" };
  for (const [i, value] of expected.entries()) {
    const excess = Math.abs(got[i]! - value) / (options.abs + options.rel * Math.abs(value));
    if (!(excess <= worst.excess)) worst = { excess, text: `at ${i}: ${got[i]}, expected ${value}` };
  }
  expect(worst.excess, worst.text).toBeLessThanOrEqual(1);
}

/** How many values are not the same number. */
export function differences(got: Float32Array, expected: Float32Array): number {
  expect(got.length).toBe(expected.length);
  return expected.reduce((count, value, i) => count + (value === got[i] ? 0 : 1), 0);
}
