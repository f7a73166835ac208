/**
 * Program → program: offers adapters that each row of a run may choose. Changes of one matrix by adapters of the same
 * rank and type are stacked, so that a backend multiplies the rows of all of them like the rows of experts.
 */
import type { Program } from "../program/backend.ts";
import { weightsOf, withWeights, type WeightRole } from "../program/describe.ts";
import type { OfferedChange, Step, Weight } from "../program/step.ts";
import { AppError, assert } from "../../base/index.ts";
import { concatBytes } from "../formats/bytes.ts";
import { readAdapter } from "../formats/gguf/adapter.ts";
import type { Gguf } from "../formats/gguf/gguf.ts";
import { makeSources, readChanges, targetOf, type Change, type Sources } from "./adapter-changes.ts";

/** Weight roles that rows may change. */
const OFFERED: readonly WeightRole[] = ["matrix", "router"];

/**
 * Throws `bad_file` if an adapter does not fit the model, and `unsupported` if it changes weights for which rows cannot
 * choose a change: embeddings, and matrices of experts and heads.
 */
export function checkOffer({ steps, shape: { arch } }: Program, base: Gguf, adapter: Gguf): void {
  const targets = (roles: readonly WeightRole[]): Set<string> =>
    new Set(steps.flatMap((step) => weightsOf(step, ...roles).map((weight) => targetOf(step, weight))));
  const offered = targets(OFFERED);
  const others = targets(["embedding", "experts"]);
  for (const { target, a } of readAdapter(adapter, base)) {
    if (offered.has(target) && !others.has(target)) continue;
    const why = `expected a matrix that '${arch}' multiplies each row by, got '${target}'`;
    throw new AppError("unsupported", `${adapter.path}: tensor '${a.name}': ${why}`);
  }
}

/** `checkOffer` must have accepted each of the adapters. */
export function offerAdapters(program: Program, base: Gguf, adapters: readonly Gguf[]): Program {
  if (adapters.length === 0) return program;
  const sources = makeSources(program.weights, adapters);
  const stacks = new Map(
    [...readChanges(base, adapters, sources)].map(([target, changes]) => [target, stacksOf(target, changes, sources)]),
  );
  const offer = (step: Step, weight: Weight, role: WeightRole): Weight => {
    const found = OFFERED.includes(role) ? stacks.get(targetOf(step, weight)) : undefined;
    if (!found) return weight;
    const offered = found.map(({ b, ...rest }) => ({ ...rest, b: partOf(b, weight) }));
    return { ...weight, offered };
  };
  const steps = program.steps.map((step) => withWeights(step, (weight, role) => offer(step, weight, role)));
  return { ...program, steps, weights: sources.weights, adapters: adapters.map(({ path }) => path) };
}

/** The part of b for a weight that may be a part of its tensor. */
const partOf = (b: Weight, { rowStart, outDim }: Weight): Weight => ({ ...b, rowStart, outDim });

/** Stacks changes of the same rank and types; a change that is alone in its stack is not copied. */
function stacksOf(target: string, changes: readonly Change[], sources: Sources): OfferedChange[] {
  const alike = Map.groupBy(changes, ({ a, b }) => `${a.outDim} ${a.quant.name} ${b.quant.name}`);
  return [...alike].map(([key, group]) => {
    const stacked = (half: "a" | "b"): Weight =>
      stackOf(
        group.map((each) => each[half]),
        `${target}.${half}: ${key}`,
        sources,
      );
    const scale = Float32Array.from(group, ({ factor }) => factor);
    return { members: group.map(({ index }) => index), a: stacked("a"), b: { ...stacked("b"), scale } };
  });
}

function stackOf(weights: readonly Weight[], name: string, sources: Sources): Weight {
  const [first] = weights;
  assert(first, `'${name}': a stack of nothing`);
  if (weights.length === 1) return first;
  sources.put(name, () => concatBytes(weights.map((weight) => sources.weights.read(weight.name))));
  return { ...first, name, experts: weights.length };
}
