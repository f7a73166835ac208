/** How many runs are open, waiting or running: of all, and of each lane. */
import { queryEach, queryOne, type Script } from "../../../database/store.ts";

/** Of all. */
export function* openRuns(): Script<number> {
  return (yield* queryOne<{ n: number }>("SELECT n FROM open_runs WHERE one = 1"))?.n ?? 0;
}

/** By lane; one that is not there has none. */
export function* openRunsOf(lanes: readonly string[]): Script<Map<string, number>> {
  const rows = yield* queryEach<{ n: number }>(
    "SELECT n FROM open_lanes WHERE lane = $1",
    lanes.map((lane) => [lane]),
  );
  return new Map(lanes.map((lane, i) => [lane, rows[i]?.n ?? 0]));
}
