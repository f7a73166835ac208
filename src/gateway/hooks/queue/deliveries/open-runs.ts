/** Counts open runs, waiting or running: of all, and of each lane. */
import { queryEach, queryOne, type Transaction } from "../../../database/store.ts";

/** Open runs of all lanes. */
export function* openRuns(): Transaction<number> {
  return (yield* queryOne<{ n: number }>("SELECT n FROM open_runs WHERE one = 1"))?.n ?? 0;
}

/** Open runs by lane; an absent lane has 0. */
export function* openRunsOf(lanes: readonly string[]): Transaction<Map<string, number>> {
  const rows = yield* queryEach<{ n: number }>(
    "SELECT n FROM open_lanes WHERE lane = $1",
    lanes.map((lane) => [lane]),
  );
  return new Map(lanes.map((lane, i) => [lane, rows[i]?.n ?? 0]));
}
