/** Runs of a session: turns batches into passes, and returns their results. */
import { AppError } from "../../../base/index.ts";
import type { Program, StateRows } from "../../program/backend.ts";
import { roundsOf } from "./chosen-rows.ts";
import type { SlotStates } from "./checkpoints.ts";
import type { Shared } from "./lowering.ts";
import { growingBlock, type Memory } from "./memory.ts";
import type { Lowered, Passes } from "./passes.ts";
import { remembers } from "./remembered.ts";
import { longestSpan, passesOf, wantedRows, type RowLimits } from "./rows.ts";

/** Approximate time of a part of a long run, for which others wait. */
const PART_MS = 100;

type Result = "logits" | "states";

interface RunOptions {
  readonly passes: Passes;
  /** @param rounds as for `lower` */
  readonly lowered: (name: Result, rounds: number, remembers: boolean) => Lowered;
  readonly slotStates: SlotStates | undefined;
  /** Checks rows; throws once the session is closed. */
  readonly prepare: (batch: readonly StateRows[]) => void;
}

interface Runs {
  run(batch: readonly StateRows[], name: Result): Float32Array;
  /** As `run` for states, with pauses between parts of passes, in which other sessions may run. */
  runWithPauses(batch: readonly StateRows[], pause: () => Promise<void>): Promise<Float32Array>;
}

export function makeRuns(
  program: Program,
  { memory, shared, limits }: { memory: Memory; shared: Shared; limits: RowLimits },
  { passes, lowered, slotStates, prepare }: RunOptions,
): Runs {
  const results = growingBlock(memory, "results");
  /** Memory for the results of a batch, and its passes. */
  const begin = (batch: readonly StateRows[], name: Result) => {
    prepare(batch);
    const { dim } = name === "logits" ? program.logits! : program.states;
    shared.maxRows = Math.max(shared.maxRows, longestSpan(batch));
    const rows = batch.reduce((sum, each) => sum + wantedRows(each), 0);
    const place = { ...results(4 * rows * dim), dim };
    const finish = (): Float32Array => {
      slotStates?.ran(batch);
      const out = new Float32Array(place.view.buffer, place.view.byteOffset, rows * dim);
      checkFinite(out, { path: program.weights.path, name, dim });
      return out;
    };
    return { place, all: passesOf(batch, { ...limits, maxRows: shared.maxRows }), finish };
  };
  return {
    run(batch, name) {
      const { place, all, finish } = begin(batch, name);
      for (const pass of all) passes.run(pass, lowered(name, roundsOf(pass), remembers(pass)), place);
      return finish();
    },
    async runWithPauses(batch, pause) {
      const { place, all, finish } = begin(batch, "states");
      let startedMs = performance.now();
      for (const pass of all) {
        const { cuts, ...records } = lowered("states", roundsOf(pass), remembers(pass));
        for (const [i, to] of cuts.entries()) {
          passes.run(pass, records, place, { from: cuts[i - 1] ?? 0, to });
          if (performance.now() - startedMs < PART_MS) continue;
          await pause();
          prepare(batch); // the session may be closed
          startedMs = performance.now();
        }
      }
      return finish();
    },
  };
}

/** Throws `runner` at the first NaN or infinite value: otherwise broken weights would be sampled from. */
export function checkFinite(
  values: Float32Array,
  { path, name, dim }: { path: string; name: string; dim: number },
): void {
  if (areNumbers(values)) return;
  for (let i = 0; i < values.length; i++) {
    const x = values[i]!;
    if (x - x === 0) continue;
    const where = `row ${Math.floor(i / dim)}, ${name === "logits" ? "token" : "value"} ${i % dim}`;
    throw new AppError("runner", `${path}: ${name}: expected numbers, got ${x} at ${where}`);
  }
}

/** Four sums of zeros, so that no addition waits for the one before. */
function areNumbers(values: Float32Array): boolean {
  let a = 0;
  let b = 0;
  let c = 0;
  let d = 0;
  const whole = values.length - (values.length % 4);
  for (let i = 0; i < whole; i += 4) {
    a += values[i]! - values[i]!; // NaN for NaN and infinite values, else 0
    b += values[i + 1]! - values[i + 1]!;
    c += values[i + 2]! - values[i + 2]!;
    d += values[i + 3]! - values[i + 3]!;
  }
  for (let i = whole; i < values.length; i++) a += values[i]! - values[i]!;
  return a + b + c + d === 0;
}
