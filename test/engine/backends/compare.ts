/** Compares logits of a backend with the reference's. */
import { expect } from "bun:test";

/** Σ (got − expected)² / Σ expected²; 0 if both are zeros. */
export function nmse(got: Float32Array, expected: Float32Array): number {
  expect(got.length).toBe(expected.length);
  let [error, power] = [0, 0];
  for (let i = 0; i < expected.length; i++) {
    const value = expected[i]!;
    error += (got[i]! - value) ** 2;
    power += value ** 2;
  }
  return error === 0 ? 0 : error / power;
}

/** Fails with the place and both values of the largest difference beyond abs + rel · |expected|. */
export function expectClose(got: Float32Array, expected: Float32Array, options: { abs: number; rel: number }): void {
  expect(got.length).toBe(expected.length);
  const { abs, rel } = options;
  let [worst, at] = [0, -1];
  for (let i = 0; i < expected.length && !Number.isNaN(worst); i++) {
    const value = expected[i]!;
    const excess = Math.abs(got[i]! - value) / (abs + rel * Math.abs(value));
    if (!(excess <= worst)) [worst, at] = [excess, i];
  }
  expect(worst, `at ${at}: ${got[at]}, expected ${expected[at]}`).toBeLessThanOrEqual(1);
}

/** Number of different values. */
export function differences(got: Float32Array, expected: Float32Array): number {
  expect(got.length).toBe(expected.length);
  let count = 0;
  for (let i = 0; i < expected.length; i++) if (expected[i] !== got[i]) count++;
  return count;
}

/** Values of several runs, one after another. */
export function joined(parts: readonly Float32Array[]): Float32Array {
  const all = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
