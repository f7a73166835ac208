/**
 * Which conformance cases a run takes. All, or as HEARTH_TEST_CASES says few that reach what matters, for drivers that
 * take seconds to compile a kernel: `kernels` reaches every kernel and unpacks every block type, `subgroups` reaches
 * every kernel whose arithmetic depends on how wide subgroups are. Those take few rows, so its cases run in as few at
 * once, without attention: what is compiled besides adds without subgroups, and `kernels` reaches it.
 */
import { fuse } from "../../../../kernels/wgsl/fuse.ts";
import { lower, ops, variants } from "../../../../kernels/wgsl/lower.ts";
import { KERNELS } from "../../../../kernels/wgsl/sources.ts";
import { missingOps } from "../../../../src/engine/backends/missing.ts";
import type { Rows } from "../../../../src/engine/program/backend.ts";
import { conformanceCases, type Case } from "../../../conformance/cases.ts";

/** Sources that see how wide a subgroup is, or have a variant that does. */
const SUBGROUPS = /^\/\/#splice sum|subgroup/m;
/** As many rows as the kernels for few rows take at once. */
const FEW_ROWS = 4;
/** A second form of a kernel adds as the first does: that takes seconds less to compile. */
const SECOND = /_shared$/;

export const CHOICES = ["kernels", "subgroups"] as const;
export type Choice = (typeof CHOICES)[number];

/** The choice of this run; undefined: all cases. */
export function choiceOfRun(): Choice | undefined {
  const name = process.env["HEARTH_TEST_CASES"];
  if (name === undefined || name === "") return undefined;
  const choice = CHOICES.find((each) => each === name);
  if (!choice) throw new Error(`HEARTH_TEST_CASES: expected ${CHOICES.join(" or ")}, got '${name}'`);
  return choice;
}

/** The cases whose every op has kernels. */
export const runnableCases = (): Case[] =>
  conformanceCases().filter(({ program }) => missingOps(program, { ops, variants }).length === 0);

/** The cases of a choice, and each other one that needs no kernel beside theirs; in the order of `cases`. */
export function chosenCases(choice: Choice | undefined, cases = runnableCases()): Case[] {
  if (!choice) return cases;
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
  while (missing.size > 0) {
    // What takes time is the first dispatch of a kernel: the case that reaches most for each that it adds.
    const worth = ({ aims, labels }: (typeof candidates)[number]): number =>
      aims.intersection(missing).size / (1 + labels.filter((label) => !compiled.has(label)).length);
    const best = candidates.reduce((a, b) => (worth(b) > worth(a) ? b : a));
    for (const aim of best.aims) missing.delete(aim);
    for (const label of best.labels) compiled.add(label);
  }
  return candidates.filter(({ labels }) => labels.every((label) => compiled.has(label))).map(({ each }) => each);
}

/** A kernel for matrices of some block types: what is compiled at once. */
export interface Pipeline {
  readonly kernel: keyof typeof KERNELS;
  readonly quants: readonly string[];
}

/** What is compiled to run a case, with few rows and with many (`sizes` of true). */
export function pipelinesOf(
  { program: { steps, states, logits }, options }: Case,
  sizes: readonly boolean[] = [false, true],
): Pipeline[] {
  const piecesOf = (weight: { tensorRows: number; experts: number }) => [
    { index: 0, first: 0, count: weight.tensorRows * weight.experts },
  ];
  const dispatches = sizes.flatMap((many) =>
    fuse(lower(steps, { ctxLen: options.ctxLen, many, piecesOf }), [states.name, (logits ?? states).name]),
  );
  const pipelines = dispatches.map(({ kernel, quants = [] }) => ({ kernel, quants }));
  return [...new Map(pipelines.map((each) => [labelOf(each), each])).values()];
}

/** The case with its batches cut into runs of few rows; none with attention, whose kernels take longest to compile. */
function inFewRows(each: Case): Case[] {
  if (each.program.steps.some(({ op }) => /attention/i.test(op))) return [];
  const dim = each.program.steps[0]!.op === "input" ? each.program.steps[0]!.out.dim : 0;
  return [{ ...each, batches: each.batches.flatMap((batch) => cut(batch, dim)) }];
}

/** Runs of few rows that are those of a batch in order. @param dim of given rows */
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
