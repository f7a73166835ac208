/** The chosen cases reach their targets. */
import { expect, test } from "bun:test";
import { DEQUANTIZERS, KERNELS } from "../../../../kernels/wgsl/sources.ts";
import type { Case } from "../../../conformance/cases.ts";
import { chosenCases, choiceOfRun, pipelinesOf, runnableCases } from "./chosen-cases.ts";

const cases = runnableCases();
const pipelines = (chosen: readonly Case[]): Set<string> =>
  new Set(chosen.flatMap((each) => pipelinesOf(each)).map(({ kernel, quants }) => [kernel, ...quants].join(" ")));
const kernelsOf = (chosen: readonly Case[]): string[] =>
  [...new Set(chosen.flatMap((each) => pipelinesOf(each)).map(({ kernel }) => kernel))].toSorted();

test("the cases for kernels reach every kernel that all cases reach, and unpack every block type", () => {
  const chosen = chosenCases("kernels", cases);
  expect(kernelsOf(chosen)).toEqual(kernelsOf(cases));
  const unpacked = new Set(chosen.flatMap((each) => pipelinesOf(each)).flatMap(({ quants }) => quants));
  expect([...unpacked].toSorted()).toEqual(Object.keys(DEQUANTIZERS).toSorted());
  expect(pipelines(chosen).size).toBeLessThan(pipelines(cases).size / 2);
});

test("the cases for subgroups reach each kernel that adds over subgroups", () => {
  const isSecond = (name: string): boolean => name === "moe_gated_shared"; // adds like moe_gated
  const adding = kernelsOf(cases).filter((name) => /#splice sum/.test(Reflect.get(KERNELS, name)) && !isSecond(name));
  expect(adding).toEqual(expect.arrayContaining(["gated_linear", "linear", "linear_3"]));
  const chosen = chosenCases("subgroups", cases);
  const few = chosen.flatMap((each) => pipelinesOf(each, [false])).map(({ kernel }) => kernel);
  expect(few).toEqual(expect.arrayContaining(adding));
  expect(pipelines(chosen).size).toBeLessThan(pipelines(chosenCases("kernels", cases)).size / 2);
});

test("the cases for subgroups run all of their rows, at most four at once", () => {
  const rowsOf = (each: Case): unknown[] =>
    each.batches.flat().flatMap(({ slot, start, tokens, input }) => {
      const dim = (input?.length ?? 0) / tokens.length;
      return [...tokens].map((token, i) => [slot, start + i, token, input?.slice(i * dim, (i + 1) * dim)]);
    });
  const wantedOf = (each: Case): number[] =>
    each.batches
      .flat()
      .flatMap(({ tokens, logits }) => (logits === "none" ? [] : [...(logits === "all" ? tokens : tokens.slice(-1))]));
  for (const each of chosenCases("subgroups", cases)) {
    const whole = cases.find(({ name }) => name === each.name)!;
    expect(rowsOf(each), each.name).toEqual(rowsOf(whole));
    expect(wantedOf(each), each.name).toEqual(wantedOf(whole));
    for (const batch of each.batches) {
      expect(batch.reduce((sum, { tokens }) => sum + tokens.length, 0)).toBeLessThanOrEqual(4);
      expect(new Set(batch.map(({ slot }) => slot)).size).toBe(batch.length);
    }
  }
});

test("the cases without a choice reach every kernel, unpack every block type, and include some of the others", () => {
  const chosen = chosenCases(undefined, cases);
  expect(kernelsOf(chosen)).toEqual(kernelsOf(cases));
  const unpacked = new Set(chosen.flatMap((each) => pipelinesOf(each)).flatMap(({ quants }) => quants));
  expect([...unpacked].toSorted()).toEqual(Object.keys(DEQUANTIZERS).toSorted());
  if (choiceOfRun() !== "all") expect(chosen.length / cases.length).toBeWithin(0.1, 0.4); // else a draw takes all
});

test("the choice 'all' gives every case", () => {
  expect(chosenCases("all", cases)).toEqual(cases);
});
