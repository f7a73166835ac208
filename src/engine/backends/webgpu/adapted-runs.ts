/**
 * Rows that have chosen adapters run apart from the others, whose kernels do more at once: so a row's bits do not
 * depend on the adapters of others, and rows without adapters take the time that they take alone.
 */
import type { TopK } from "../../text/sampling/top-k.ts";
import type { WantedRows } from "./chunks.ts";

export interface RunResult {
  /** Values of wanted rows without a request. */
  readonly values: Float32Array;
  /** Candidates of wanted rows with a request. */
  readonly topK: TopK[];
  /** States of all wanted rows; empty if unwanted. */
  readonly states: Float32Array;
}

interface Dims {
  readonly values: number;
  readonly states: number;
}

const isAdapted = ({ adapters = [] }: WantedRows): boolean => adapters.length > 0;

/** Returns whether some of the rows have chosen adapters, and others have not. */
export const isMixed = (batch: readonly WantedRows[]): boolean => batch.some(isAdapted) && !batch.every(isAdapted);

/** Runs a mixed batch in two runs, and joins the results in its order. */
export async function runApart(
  batch: readonly WantedRows[],
  dims: Dims,
  run: (batch: readonly WantedRows[]) => Promise<RunResult>,
): Promise<RunResult> {
  const plain = await run(batch.filter((rows) => !isAdapted(rows)));
  const kept = { ...plain, values: plain.values.slice() }; // the next run overwrites them
  const adapted = await run(batch.filter(isAdapted));
  const sum = (key: "values" | "states"): Float32Array => new Float32Array(kept[key].length + adapted[key].length);
  const joined = { values: sum("values"), topK: [] as TopK[], states: sum("states") };
  const at = { values: 0, states: 0 };
  const taken = new Map([kept, adapted].map((from) => [from, { values: 0, topK: 0, states: 0 }]));
  for (const rows of batch) {
    const from = isAdapted(rows) ? adapted : kept;
    const next = taken.get(from)!; // both have one
    const wanted = rows.states === "all" ? rows.tokens.length : rows.states === "none" ? 0 : 1;
    const counts = { values: rows.request ? 0 : wanted * dims.values, states: wanted * dims.states };
    for (const key of ["values", "states"] as const) {
      const part = from[key].subarray(next[key], next[key] + counts[key]);
      joined[key].set(part, at[key]);
      next[key] += part.length;
      at[key] += part.length;
    }
    if (rows.request) joined.topK.push(...from.topK.slice(next.topK, (next.topK += wanted)));
  }
  return joined;
}
