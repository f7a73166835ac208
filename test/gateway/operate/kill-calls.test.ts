import { expect, test } from "bun:test";
import { postgresUrl } from "../../stores.ts";
import { killDuringCalls } from "./kill-calls.ts";

/** `bun bench/kill-tool-calls.ts` kills more often. */
const KILLS = 8;

test.skipIf(postgresUrl !== undefined)(
  "killed during turns with effects: none twice, none lost, and every turn ends or says why",
  async () => {
    const { runs, faults } = await killDuringCalls(KILLS);
    expect(faults).toEqual([]);
    expect(runs).toBeGreaterThan(KILLS);
  },
  300_000,
);
