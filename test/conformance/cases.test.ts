/** Checks the cases themselves: they run on the reference, give finite results, and cover every step and block type. */
import { describe, expect, test } from "bun:test";
import { cpuBackend } from "../../src/engine/backends/cpu.ts";
import { quants } from "../../src/engine/formats/quant/index.ts";
import { drawn } from "../seed.ts";
import { conformanceCases, runCase } from "./cases.ts";

const cases = conformanceCases();

describe("every case gives finite logits of a size that makes a difference visible", () => {
  const some = drawn("sizes of cases", cases, Math.ceil(cases.length / 4));
  test.each(some.map((each) => [each.name, each] as const))(
    "%s",
    async (_, each) => {
      const runs = await runCase(cpuBackend, each);
      const wanted = { all: Infinity, last: 1, none: 0 };
      const counts = each.batches.map((batch) =>
        batch.reduce((sum, { tokens, logits }) => sum + Math.min(tokens.length, wanted[logits]), 0),
      );
      expect(runs.map(({ length }) => length / each.program.states.dim)).toEqual(counts);
      const largest = runs.flatMap((run) => [...run]).reduce((a, b) => Math.max(a, Math.abs(b)), 0);
      const [least, most] = each.name.includes("zeros") ? [0, 0] : [0.05, 1000];
      expect(largest).toBeGreaterThanOrEqual(least);
      expect(largest).toBeLessThanOrEqual(most);
    },
    60_000,
  );
});

test("every case has the same weights each time", async () => {
  for (const [i, each] of conformanceCases().entries().take(10)) {
    expect(await runCase(cpuBackend, each)).toEqual(await runCase(cpuBackend, cases[i]!));
  }
});

test("every block type has a case of linear, embed and gatedMlp", () => {
  for (const quant of Object.keys(quants)) {
    for (const name of [`linear: ${quant}`, `embed: ${quant}, scaled`, `gatedMlp: ${quant}`]) {
      expect(cases.map((each) => each.name)).toContain(name);
    }
  }
});

test("no two cases share a name", () => {
  expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
});
