/**
 * The steps at which wanted rows are selected. test/engine/architectures/ tests with every architecture that nothing
 * else changes.
 */
import { expect, test } from "bun:test";
import { takeRowsEarly } from "../../../src/engine/program/early-rows.ts";
import type { Buf, Step, Weight } from "../../../src/engine/program/step.ts";
import { quants } from "../../../src/engine/formats/quant/index.ts";

const buf = (name: string): Buf => ({ name, dim: 4 });
const [x, y, heads, last, logits] = [buf("x"), buf("y"), buf("heads"), buf("last"), buf("logits")];
const w: Weight = { name: "w", quant: quants.f32, inDim: 4, outDim: 4, rowStart: 0, tensorRows: 4, experts: 1 };
const attention: Step = {
  op: "attention",
  out: heads,
  q: x,
  k: x,
  v: x,
  layer: 0,
  nHeads: 1,
  nKvHeads: 1,
  headDim: 4,
  scale: 1,
  window: 0,
  softCap: 0,
  rope: undefined,
};
const take: Step = { op: "takeRows", out: last, x };
const head: Step = { op: "linear", out: logits, x: last, w };

/** `op out ← inputs` */
const shown = (steps: readonly Step[]): string[] =>
  steps.map((step) => {
    if (step.op === "add") return `add ${step.out.name} ← ${step.a.name} ${step.b.name}`;
    if (step.op === "attention") return "attention";
    return "out" in step && "x" in step ? `${step.op} ${step.out.name} ← ${step.x.name}` : step.op;
  });

test("each buffer read after the last attention is reduced to the wanted rows once", () => {
  const steps: Step[] = [
    attention,
    { op: "linear", out: y, x: heads, w },
    { op: "add", out: x, a: x, b: y, scale: 1 },
    { op: "gatedMlp", out: y, x, gate: w, up: w, down: w, act: "silu" },
    { op: "add", out: x, a: x, b: y, scale: 1 },
    take,
    head,
  ];
  expect(shown(takeRowsEarly(steps))).toEqual([
    "attention",
    "takeRows heads.last ← heads",
    "takeRows last ← x",
    "linear y.last ← heads.last",
    "add last ← last y.last",
    "gatedMlp y.last ← last",
    "add last ← last y.last",
    "linear logits ← last",
  ]);
});

test("rows are taken from the buffer itself if no step changes it in between", () => {
  const steps: Step[] = [attention, { op: "linear", out: y, x: heads, w }, take, head];
  expect(shown(takeRowsEarly(steps))).toContain("takeRows last ← x");
});

test("a program without attention, or with a step that needs positions after it, is not changed", () => {
  const scale: Step = { op: "positionScale", x, coef: 1, floorScale: 1, offset: 0 };
  for (const steps of [
    [take, head],
    [attention, scale, take, head],
    [attention, head],
  ]) {
    expect(takeRowsEarly(steps)).toEqual(steps);
  }
});
