/** Single steps of a program on the kernels, such as the experts of layers whose other steps are on a GPU. */
import { assert } from "../../../base/index.ts";
import type { LoadOptions, Program, StepRows, StepSession } from "../../program/backend.ts";
import { handedDim, readsOf, writtenBy } from "../../program/describe.ts";
import { stepName } from "../../program/step-name.ts";
import type { Buf, Step } from "../../program/step.ts";
import { lower } from "./lower.ts";
import type { Shared } from "./lowering.ts";
import { makePasses, type Engine, type Lowered } from "./passes.ts";
import { growingBlock } from "./memory.ts";
import { passesOf } from "./rows.ts";
import { checkFinite } from "./runs.ts";
import { makeParts } from "./session.ts";

/** Loads steps that share threads and scratch. Copies only the vectors among their weights. */
export function makeStepSession(
  program: Program,
  steps: readonly Step[],
  { engine, ...options }: LoadOptions & { readonly engine: Engine },
): StepSession {
  const dim = Math.max(...steps.map(handedDim)); // shorter rows end in zeros
  const given: Buf = { name: "given", dim };
  const begin: Step = { op: "input", out: given };
  const parts = makeParts({ ...program, steps: [begin, ...steps], logits: undefined }, options, {
    ...engine,
    streaming: undefined,
  });
  const { shared, memory } = parts;
  const limits = { ...parts.limits, keeps: true }; // distinguishes drafted rows from a prompt's
  const lowered = new Map(steps.map((step) => [step, lowerStep(step, given, shared)]));
  const width = Math.max(...steps.map((step) => writtenBy(step).dim));
  const passes = makePasses({
    memory,
    shared,
    limits: { ...limits, dim: width },
    engine,
    small: options.small ?? false,
  });
  const results = growingBlock(memory, "results");
  let closed = false;
  return {
    backend: engine.backend,
    device: `CPU (${engine.threads} thread${engine.threads === 1 ? "" : "s"}, ${engine.level})`,
    bytes: { weights: shared.weights.mappedBytes(), kv: 0, scratch: memory.bytes },
    run(step, { values, drafted }: StepRows) {
      assert(!closed, "run of a closed session");
      const records = lowered.get(step);
      assert(records, `step '${step.op}' was not loaded`);
      const own = handedDim(step);
      const rows = values.length / own;
      const outDim = writtenBy(step).dim;
      const size = rows * outDim;
      const place = { ...results(4 * size), dim: outDim };
      const entry = {
        slot: 0,
        start: 0,
        tokens: new Int32Array(rows),
        input: widened(values, own, dim),
        states: "all",
        drafted,
      } as const;
      for (const pass of passesOf([entry], limits)) passes.run(pass, records, place);
      const out = new Float32Array(place.view.buffer, place.view.byteOffset, size);
      checkFinite(out, { path: program.weights.path, name: stepName(step), dim: place.dim });
      return out;
    },
    close() {
      if (closed) return;
      closed = true;
      passes.close();
    },
  };
}

/** Rows of `from` values, each followed by zeros up to `to`. */
function widened(values: Float32Array, from: number, to: number): Float32Array {
  if (from === to) return values;
  const rows = new Float32Array((values.length / from) * to);
  for (let row = 0; row * from < values.length; row++)
    rows.set(values.subarray(row * from, (row + 1) * from), row * to);
  return rows;
}

/** A step on given rows: these are its inputs, or parts of its inputs. */
function lowerStep(step: Step, given: Buf, shared: Shared): Lowered {
  const inputs = readsOf(step);
  const [only] = inputs;
  let at = 0;
  const begin: Step[] =
    only && inputs.length === 1 && only.dim === given.dim
      ? [{ op: "input", out: only }]
      : [
          { op: "input", out: given },
          ...inputs.map((out): Step => {
            at += out.dim;
            return { op: "slice", out, x: given, heads: 1, at: at - out.dim };
          }),
        ];
  const y = writtenBy(step);
  const out = { ...y, name: `${y.name} wanted` };
  return lower([...begin, step, { op: "takeRows", out, x: y }], out, shared);
}
