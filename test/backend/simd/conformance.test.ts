/**
 * Every step against the reference, at every level that this machine has. Precise mode: float32 throughout, the
 * tolerance of the case. Default mode: weights stay exact, activations are rounded to 8 bits in blocks of 32.
 */
import { describe, expect, test } from "bun:test";
import { cpuBackend } from "../../../src/backend/cpu.ts";
import { conformanceCases, runCase, type Case } from "../../conformance/cases.ts";
import { expectClose, nmse } from "../compare.ts";
import { simdLevels } from "./levels.ts";

/** Rounding to 8 bits leaves 1/256 of a block's largest value, about 1e-5 in the square; a gated MLP multiplies two. */
const INT8_NMSE_MAX = 1e-3;

const cases = conformanceCases();
const expected = new Map<Case, Promise<Float32Array[]>>();
/** What the reference says, computed once for all levels. */
const reference = (each: Case): Promise<Float32Array[]> => {
  const known = expected.get(each) ?? runCase(cpuBackend, each);
  expected.set(each, known);
  return known;
};

describe.each(simdLevels)("$level", ({ backend }) => {
  test("every step agrees with the reference in precise mode", async () => {
    for (const each of cases) {
      const got = await runCase(backend, each);
      const wanted = await reference(each);
      for (const [i, logits] of got.entries()) expectClose(logits, wanted[i]!, each.tolerance);
    }
  }, 60_000);

  test("every step is close to the reference in default mode", async () => {
    for (const each of cases) {
      const got = await runCase(backend, each, { precise: false });
      const wanted = await reference(each);
      const all = (runs: readonly Float32Array[]): Float32Array => Float32Array.from(runs.flatMap((run) => [...run]));
      expect(nmse(all(got), all(wanted)), each.name).toBeLessThan(INT8_NMSE_MAX);
    }
  }, 60_000);
});
