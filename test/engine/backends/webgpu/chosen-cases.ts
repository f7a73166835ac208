/**
 * Selects the conformance cases of a run: cases that reach every kernel and unpack every block type, and some of the
 * others, drawn by the seed; or as HEARTH_TEST_CASES says: `all`; or for drivers that take seconds to compile a kernel:
 * `kernels` reaches every kernel and unpacks every block type, `subgroups` reaches every kernel whose arithmetic
 * depends on the width of subgroups. The latter use few rows, so its cases run in few at once, without attention:
 * other kernels add without subgroups, and `kernels` reaches them.
 */
import { fuse } from "../../../../kernels/wgsl/fuse.ts";
import { lower, ops, variants } from "../../../../kernels/wgsl/lower.ts";
import { DEQUANTIZERS, KERNELS } from "../../../../kernels/wgsl/sources.ts";
import { vectorDimOf } from "../../../../src/engine/backends/check-batch.ts";
import { missingOps } from "../../../../src/engine/backends/missing-ops.ts";
import type { Rows } from "../../../../src/engine/program/backend.ts";
import { conformanceCases, type Case } from "../../../conformance/cases.ts";
import { rowCases } from "../../../conformance/row-cases.ts";
import { drawn } from "../../../seed.ts";

/** Sources that depend on the width of a subgroup, or have a variant that does. */
const SUBGROUPS = /^\/\/#splice sum|subgroup/m;
/** As many rows as the kernels for few rows take at once. */
const FEW_ROWS = 4;
/** A span of hundreds of rows takes a software adapter half a minute: chunks.test.ts cuts such without one. */
const LONG = 512;
/** A second form of a kernel adds like the first: skipping it saves seconds of compilation. */
const SECOND = /_shared$/;

/** Block types whose products a run draws: each costs a compilation of every kernel that multiplies. */
const DRAWN_TYPES = 2;
/** The share of the other cases that a run draws. */
const DRAWN = 0.1;

export const CHOICES = ["all", "kernels", "subgroups"] as const;
export type Choice = (typeof CHOICES)[number];

/** The choice of this run; undefined: all cases. */
export function choiceOfRun(): Choice | undefined {
  const name = process.env["HEARTH_TEST_CASES"];
  if (name === undefined || name === "") return undefined;
  const choice = CHOICES.find((each) => each === name);
  if (!choice) throw new Error(`HEARTH_TEST_CASES: expected ${CHOICES.join(" or ")}, got '${name}'`);
  return choice;
}

/** The cases whose ops all have kernels. */
export const runnableCases = (): Case[] =>
  [...conformanceCases(), ...rowCases().filter(({ options }) => options.ctxLen < LONG)].filter(
    ({ program }) => missingOps(program, { ops, variants }).length === 0,
  );

/** The cases of a choice; in the order of `cases`. */
export function chosenCases(choice: Choice | undefined, cases = runnableCases()): Case[] {
  if (choice === "all") return [...cases];
  if (choice) {
    const { candidates, compiled } = reach(choice, cases);
    return candidates.filter(({ labels }) => labels.every((label) => compiled.has(label))).map(({ each }) => each);
  }
  const { candidates, compiled, needed } = reach("kernels", cases);
  const types = drawn("block types on the GPU", Object.keys(DEQUANTIZERS), DRAWN_TYPES);
  const mayCompile = (label: string): boolean =>
    compiled.has(label) ||
    label
      .split(" ")
      .slice(1)
      .every((quant) => types.includes(quant));
  const others = candidates.filter(({ each, labels }) => !needed.has(each) && labels.every(mayCompile));
  const count = Math.ceil(DRAWN * others.length);
  const some = new Set(drawn("conformance on the GPU", others, count).map(({ each }) => each));
  return cases.filter((each) => needed.has(each) || some.has(each));
}

/** The cases that a choice needs, all that it takes them from, and the kernels that they compile. */
function reach(choice: "kernels" | "subgroups", cases: readonly Case[]) {
  const few = choice === "subgroups";
  const candidates = (few ? cases.flatMap(inFewRows) : cases).map((each) => {
    const pipelines = pipelinesOf(each, few ? [false] : [false, true]);
    return {
      each,
      labels: pipelines.map(labelOf),
      aims: new Set(pipelines.flatMap((pipeline) => aimsOf(pipeline, choice))),
    };
  });
  const missing = new Set(candidates.flatMap(({ aims }) => [...aims]));
  const compiled = new Set<string>();
  const needed = new Set<Case>();
  while (missing.size > 0) {
    // The first dispatch of a kernel costs most: takes the case that reaches most per kernel that it adds.
    const worth = ({ aims, labels }: (typeof candidates)[number]): number =>
      aims.intersection(missing).size / (1 + labels.filter((label) => !compiled.has(label)).length);
    const best = candidates.reduce((a, b) => (worth(b) > worth(a) ? b : a));
    needed.add(best.each);
    for (const aim of best.aims) missing.delete(aim);
    for (const label of best.labels) compiled.add(label);
  }
  return { candidates, compiled, needed };
}

/** A kernel for matrices of some block types: the unit of compilation. */
export interface Pipeline {
  readonly kernel: keyof typeof KERNELS;
  readonly quants: readonly string[];
}

/** The pipelines of a case, for few rows and for many (`sizes` of true). */
export function pipelinesOf(
  { program: { steps, states, logits }, options }: Case,
  sizes: readonly boolean[] = [false, true],
): Pipeline[] {
  const piecesOf = (weight: { tensorRows: number; experts: number }) => [
    { index: 0, first: 0, count: weight.tensorRows * weight.experts },
  ];
  const dispatches = sizes.flatMap((isGemm) =>
    fuse(
      lower(steps, { ctxLen: options.ctxLen, givenDim: options.images ? vectorDimOf(steps) : 0, isGemm, piecesOf }),
      [states.name, (logits ?? states).name],
    ),
  );
  const pipelines = dispatches.map(({ kernel, quants = [] }) => ({ kernel, quants }));
  return [...new Map(pipelines.map((each) => [labelOf(each), each])).values()];
}

/**
 * The case with its batches cut into runs of few rows; empty with attention, whose kernels take longest to compile, or
 * with rows that have more than an id.
 */
function inFewRows(each: Case): Case[] {
  if (each.program.steps.some(({ op }) => /attention/i.test(op)) || each.options.images) return [];
  const dim = each.program.steps[0]!.op === "input" ? each.program.steps[0]!.out.dim : 0;
  return [{ ...each, batches: each.batches.flatMap((batch) => cut(batch, dim)) }];
}

/**
 * Runs of few rows that make up a batch in order.
 * @param dim of given rows
 */
function cut(batch: readonly Rows[], dim: number): Rows[][] {
  const runs: Rows[][] = [];
  let room = 0;
  for (const { slot, start, tokens, logits, input, ...more } of batch) {
    if (Object.keys(more).length > 0) throw new Error(`invariant: cases give no ${Object.keys(more)}`);
    for (let at = 0; at < tokens.length;) {
      if (room === 0 || at > 0) {
        runs.push([]);
        room = FEW_ROWS;
      }
      const end = Math.min(tokens.length, at + room);
      const wanted = logits === "last" && end < tokens.length ? "none" : logits;
      const given = input ? { input: input.slice(at * dim, end * dim) } : {};
      runs.at(-1)!.push({ slot, start: start + at, tokens: tokens.slice(at, end), logits: wanted, ...given });
      room -= end - at;
      at = end;
    }
  }
  return runs;
}

const labelOf = ({ kernel, quants }: Pipeline): string => [kernel, ...quants].join(" ");

function aimsOf({ kernel, quants }: Pipeline, choice: Choice): string[] {
  if (choice === "subgroups") return SUBGROUPS.test(KERNELS[kernel]) ? [kernel.replace(SECOND, "")] : [];
  return [kernel, ...quants.map((quant) => `unpacks ${quant}`)];
}
