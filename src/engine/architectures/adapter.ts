/**
 * Program → program: applies adapters to a model. Every weight that an adapter changes gets the change as a low-rank
 * part, several adapters side by side; steps and files stay unchanged.
 */
import type { Program } from "../program/backend.ts";
import { withWeights, type WeightRole } from "../program/describe.ts";
import type { LowRank, Step, Weight } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import type { Gguf } from "../formats/gguf/gguf.ts";
import { makeSources, readChanges, targetOf, type Change } from "./adapter-changes.ts";

/** Weight roles that a LoRA may change: matrices and embeddings. */
const CHANGED: ReadonlySet<WeightRole> = new Set(["matrix", "experts", "router", "embedding"]);

/**
 * Throws `bad_file` if an adapter does not fit the model, and `unsupported` if it changes a weight other than a matrix
 * or an embedding.
 */
export function applyAdapters(program: Program, base: Gguf, adapters: readonly Gguf[]): Program {
  if (adapters.length === 0) return program;
  const sources = makeSources(program.weights, adapters);
  const changes = readChanges(base, adapters, sources);
  const used = new Set<string>();
  const change = (step: Step, weight: Weight, role: WeightRole): Weight => {
    const target = targetOf(step, weight);
    const found = CHANGED.has(role) ? changes.get(target) : undefined;
    if (!found) return weight;
    used.add(target);
    return { ...weight, lowRank: found.map((each) => partOf(each, weight)) };
  };
  const changed = (all: readonly Step[]): Step[] =>
    all.map((step) => withWeights(step, (weight, role) => change(step, weight, role)));
  const { memory, reader } = program;
  const { weights } = sources;
  const own = {
    steps: changed(program.steps),
    ...(memory && { memory: { ...memory, steps: changed(memory.steps) } }),
    ...(reader && {
      reader: { ...reader, program: { ...reader.program, steps: changed(reader.program.steps), weights } },
    }),
  };
  for (const [target, [first]] of changes) {
    if (used.has(target) || !first) continue;
    const why = `'${program.shape.arch}' multiplies nothing by that weight`;
    throw new AppError("unsupported", `${first.path}: tensor '${first.label}': ${why}`);
  }
  return { ...program, ...own, weights };
}

/** The change of a weight that is the whole tensor or a part of it. */
function partOf({ a, b, factor }: Change, weight: Weight): LowRank {
  const scale = new Float32Array(weight.experts).fill(factor);
  return { a, b: { ...b, rowStart: weight.rowStart, outDim: weight.outDim, scale } };
}
