/**
 * Every step against the reference, at every level of this machine. Precise mode: float32 throughout, the tolerance of
 * the case. Default mode: weights stay exact, activations are rounded to 8 bits in blocks of 32.
 */
import { describe, expect, test } from "bun:test";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import { missingOps } from "../../../../src/engine/backends/missing-ops.ts";
import { kvStates } from "../../../../src/engine/program/sequence-state.ts";
import { ops, variants } from "../../../../src/engine/backends/simd/lower.ts";
import { conformanceCases, runCase, type Case } from "../../../conformance/cases.ts";
import { rowCases } from "../../../conformance/row-cases.ts";
import { drawn } from "../../../seed.ts";
import { expectClose, joined, nmse } from "../compare.ts";
import { simdLevels } from "./levels.ts";

/** Rounding to 8 bits leaves 1/256 of a block's largest value, about 1e-5 in the square; a gated MLP multiplies two. */
const INT8_NMSE_MAX = 1e-3;
/** Rounding to 4 bits leaves half of a 15th of the largest of 32 values: about 0.7 % of their squares. */
const FOUR_BITS_NMSE_MAX = 0.05;
/** The same where keys in 4 bits choose positions: of two with nearly the same score, the other one. */
const FOUR_BITS_CHOICE_NMSE_MAX = 0.2;
/** Keys and values are half floats; prompts multiply them as integers, with 4,095 for a vector's largest value. */
const ATTENTION_NMSE_MAX = 2e-6;

const all = [...conformanceCases(), ...rowCases()];
/** Half of the cases of each op, which the seed draws: the reference computes no others. */
const byOp = Map.groupBy(all, ({ name }) => name.split(":")[0]!);
const cases = [...byOp].flatMap(([op, own]) => drawn(`steps of ${op}`, own, Math.ceil(own.length / 2)));
/** Scores too large for exp choose one value: rounding chooses another. */
const keepsKeys = ({ name, program: { steps } }: Case): boolean =>
  kvStates(steps).length > 0 && !name.includes("too large for exp");
const expected = new Map<Case, Promise<Float32Array[]>>();
/** The reference's results, computed once for all levels. */
const reference = (each: Case): Promise<Float32Array[]> => {
  const known = expected.get(each) ?? runCase(cpuBackend, each);
  expected.set(each, known);
  return known;
};

test("there are kernels for every step", () => {
  expect(all.flatMap(({ program }) => missingOps(program, { ops, variants }))).toEqual([]);
});

function nmseMax({ name }: Case, kvType: "f16" | "q8_0" | "q4_0"): number {
  const chooses = name.startsWith("choosePositions"); // the other of two near scores may be chosen
  if (kvType !== "q4_0") return chooses && kvType === "q8_0" ? 2 * INT8_NMSE_MAX : INT8_NMSE_MAX;
  return chooses ? FOUR_BITS_CHOICE_NMSE_MAX : FOUR_BITS_NMSE_MAX;
}

/** The best level runs all of them, the others half. */
const casesAt = (level: string): Case[] =>
  level === simdLevels[0]!.level ? cases : drawn(`steps at ${level}`, cases, Math.ceil(cases.length / 2));

describe.each(simdLevels)("$level", ({ level, backend }) => {
  const own = casesAt(level);

  test.each([
    ["precise mode", { precise: true }],
    ["a small model", { precise: false, small: true }],
  ])(
    "every step agrees with the reference in %s",
    async (_, mode) => {
      for (const each of own) {
        const got = await runCase(backend, each, mode);
        const wanted = await reference(each);
        for (const [i, logits] of got.entries()) expectClose(logits, wanted[i]!, each.tolerance);
      }
    },
    60_000,
  );

  test.each(["f16", "q8_0", "q4_0"] as const)(
    "every step is close to the reference in default mode, keys in %s",
    async (kvType) => {
      for (const each of kvType === "f16" ? own : own.filter(keepsKeys)) {
        const got = await runCase(backend, each, { precise: false, kvType });
        const wanted = await reference(each);
        expect(nmse(joined(got), joined(wanted)), each.name).toBeLessThan(nmseMax(each, kvType));
      }
    },
    60_000,
  );

  test("attention is as close to the reference as half floats allow", async () => {
    const alone = own.filter(({ name }) => /^\w*[aA]ttention: /.test(name));
    expect(alone.length).toBeGreaterThan(level === simdLevels[0]!.level ? 25 : 5);
    for (const each of alone) {
      const got = joined(await runCase(backend, each, { precise: false }));
      expect(nmse(got, joined(await reference(each))), each.name).toBeLessThan(ATTENTION_NMSE_MAX);
    }
  }, 60_000);
});
