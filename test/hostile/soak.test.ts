/** Short generations over three models, a fifth of them aborted: they leave nothing behind. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join, resolve } from "node:path";
import { startHearth, type Hearth } from "../e2e/hearth.ts";
import { testSeed } from "../seed.ts";
import { heldBy, installCopies, slotsAreFree, soak } from "./soak.ts";

const EMBEDDED = resolve(import.meta.dir, "../../models/hearth/hearth.gguf");
const SLOTS = 3;
let hearth: Hearth;
let models: string[] = [];
beforeAll(async () => {
  hearth = await startHearth({ env: { HEARTH_NUM_PARALLEL: `${SLOTS}`, HEARTH_CONTEXT_LENGTH: "256" } });
  models = await installCopies(join(hearth.home, ".hearth", "models"), EMBEDDED, 3);
}, 120_000);
afterAll(() => hearth.stop());

test("300 generations, aborted at random, leave no process, thread, file or slot behind, and little memory", async () => {
  const run = (requests: number) => soak(hearth, { models, requests, clients: 10, seed: testSeed });
  expect(await run(60)).toMatchObject({ failed: 0, failure: undefined });
  const before = await heldBy(hearth);
  expect(before.processes).toBe(1 + models.length);
  const { ended, aborted, failed, failure } = await run(300);
  expect(failure).toBeUndefined();
  expect(failed).toBe(0);
  expect(ended).toBeGreaterThan(200);
  expect(aborted).toBeGreaterThan(5);
  expect(await slotsAreFree(hearth, models, SLOTS)).toBe(true);
  const after = await heldBy(hearth);
  expect(after.processes).toBe(before.processes);
  expect(after.threads).toBeLessThanOrEqual(before.threads + 4); // the runtime's own threads come and go
  expect(after.files).toBeLessThanOrEqual(before.files + 12); // sockets that clients keep open
  expect(after.bytes).toBeLessThan(1.5 * before.bytes); // most of this short run is warm-up: see bench/soak.ts
}, 120_000);
