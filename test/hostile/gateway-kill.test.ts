/** The gateway of the real server, killed at random moments under load of senders, models and chats. */
import { expect, test } from "bun:test";
import { killGateway } from "./killed-gateway.ts";

const KILLS = 5; // `bun bench/gateway-kill.ts --kills 100` does more

test("kill -9 under load loses no accepted run, runs and sends none twice, and keeps their order", async () => {
  const { accepted, lost, duplicates, mismatches, disordered, outcomes } = await killGateway({ kills: KILLS });
  expect(accepted).toBeGreaterThan(KILLS);
  expect({ lost, duplicates, mismatches, disordered }).toEqual({
    lost: [],
    duplicates: [],
    mismatches: [],
    disordered: [],
  });
  expect(Object.keys(outcomes).toSorted()).toEqual(["agent succeeded, reply sent", "wake succeeded, reply none"]);
}, 900_000);
