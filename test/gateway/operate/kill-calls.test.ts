import { expect, test } from "bun:test";
import { postgresUrl } from "../../stores.ts";
import { killDuringCalls } from "./kill-calls.ts";

/** `bun bench/kill-tool-calls.ts` kills more often. */
const KILLS = 8;

test.skipIf(postgresUrl !== undefined)(
  "after kills during turns with effects, no effect is repeated or lost, and every turn ends or gives the reason",
  async () => {
    const { runs, faults } = await killDuringCalls(KILLS);
    expect(faults).toEqual([]);
    expect(runs).toBeGreaterThan(KILLS);
  },
  300_000,
);
