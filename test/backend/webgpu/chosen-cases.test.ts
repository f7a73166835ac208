/** The few cases that stand for all of them reach what they are to reach. */
import { expect, test } from "bun:test";
import { DEQUANTIZERS, KERNELS } from "../../../kernels/wgsl/sources.ts";
import type { Case } from "../../conformance/cases.ts";
import { chosenCases, pipelinesOf, runnableCases } from "./chosen-cases.ts";

const cases = runnableCases();
const pipelines = (chosen: readonly Case[]): Set<string> =>
  new Set(chosen.flatMap(pipelinesOf).map(({ kernel, quants }) => [kernel, ...quants].join(" ")));
const kernelsOf = (chosen: readonly Case[]): string[] =>
  [...new Set(chosen.flatMap(pipelinesOf).map(({ kernel }) => kernel))].toSorted();

test("the cases for every kernel reach each that any case reaches, and unpack every block type", () => {
  const chosen = chosenCases("kernels", cases);
  expect(kernelsOf(chosen)).toEqual(kernelsOf(cases));
  const unpacked = new Set(chosen.flatMap(pipelinesOf).flatMap(({ quants }) => quants));
  expect([...unpacked].toSorted()).toEqual(Object.keys(DEQUANTIZERS).toSorted());
  expect(pipelines(chosen).size).toBeLessThan(pipelines(cases).size / 2);
});

test("the cases for subgroups reach each kernel that adds over them", () => {
  const isSecond = (name: string): boolean => name === "moe_gated_shared"; // adds as moe_gated does
  const adding = kernelsOf(cases).filter((name) => /#splice sum/.test(Reflect.get(KERNELS, name)) && !isSecond(name));
  expect(adding).toEqual(expect.arrayContaining(["gated_linear", "linear", "linear_3"]));
  const chosen = chosenCases("subgroups", cases);
  expect(kernelsOf(chosen)).toEqual(expect.arrayContaining(adding));
  expect(pipelines(chosen).size).toBeLessThan(pipelines(chosenCases("kernels", cases)).size / 2);
});

test("without a choice all cases run", () => {
  expect(chosenCases(undefined, cases)).toBe(cases);
});
