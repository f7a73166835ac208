/** Waiting for a device burns no core, and does not block the event loop. */
import { describe, expect, test } from "bun:test";
import { makeDurations, makePump } from "../../../../src/engine/backends/webgpu/device-polling.ts";
import type { Pacing } from "./pacing.ts";
import { swiftShaderEnv } from "./swiftshader.ts";

test("waiting for a device keeps the system's setImmediate, and a turn of the event loop takes under 0.7 ms", async () => {
  const child = Bun.spawn([process.execPath, `${import.meta.dir}/pacing.ts`], {
    env: { ...process.env, ...(await swiftShaderEnv()) },
    stderr: "inherit",
  });
  const { own, looks, waitedMs, turnMs } = JSON.parse(await child.stdout.text()) as Pacing;
  expect(own).toBe(true);
  expect(turnMs).toBeLessThan(0.7); // a timer of one millisecond takes 1.05
  expect(waitedMs).toBeGreaterThan(20); // otherwise nothing was measured
  expect(looks).toBeLessThan(waitedMs + 2000); // a busy core: some 500 per millisecond
}, 60_000);

describe("the pump", () => {
  test("replaces setImmediate for the length of a call, even if the call throws", () => {
    const before = globalThis.setImmediate;
    const pump = makePump();
    expect(pump.start(() => globalThis.setImmediate)).not.toBe(before);
    expect(globalThis.setImmediate).toBe(before);
    const failing = (): never => {
      throw new Error("refused");
    };
    expect(() => pump.start(failing)).toThrow("refused");
    expect(globalThis.setImmediate).toBe(before);
  });

  test("delays callbacks that were requested in such a call, and the callbacks that these request", async () => {
    const pump = makePump();
    let looks = 0;
    const { promise, resolve } = Promise.withResolvers<void>();
    const look = (): void => {
      if (++looks === 20) resolve();
      else setImmediate(look); // as Dawn does: through the global name at that time
    };
    const from = performance.now();
    pump.start(() => setImmediate(look));
    await promise;
    expect(performance.now() - from).toBeGreaterThan(15);
  });

  test("polls without pauses for a moment after a submit", async () => {
    const pump = makePump();
    const looksOfOne = async (): Promise<number> => {
      let looks = 0;
      const { promise, resolve } = Promise.withResolvers<void>();
      const from = performance.now();
      const look = (): void => {
        looks++;
        if (performance.now() - from > 0.2) resolve();
        else setImmediate(look);
      };
      pump.kick();
      pump.start(() => setImmediate(look));
      await promise;
      return looks;
    };
    let most = 0;
    // other processes may hold the core
    for (let i = 0; i < 100 && most <= 5; i++) most = Math.max(most, await looksOfOne());
    expect(most).toBeGreaterThan(5); // with pauses of a millisecond it is two
  });

  test("polls without pauses again shortly before the expected end of the work", async () => {
    /** Polls in the part of a millisecond around a time after a kick. */
    const looksAt = async (atMs: number, expectedMs: number | undefined): Promise<number> => {
      const pump = makePump();
      let looks = 0;
      const { promise, resolve } = Promise.withResolvers<void>();
      pump.kick(expectedMs);
      const from = performance.now();
      const look = (): void => {
        const now = performance.now() - from;
        if (now > atMs && now < atMs + 0.2) looks++;
        if (now > atMs + 0.2) resolve();
        else setImmediate(look);
      };
      pump.start(() => setImmediate(look));
      await promise;
      return looks;
    };
    let most = 0;
    for (let i = 0; i < 50 && most <= 5; i++) most = Math.max(most, await looksAt(9.5, 10));
    expect(most).toBeGreaterThan(5);
    // A middle of a run, one without a known duration, and one too long for a millisecond to matter.
    for (const [at, expected] of [
      [4, 10],
      [9.5, undefined],
      [9.5, 10_000],
    ] as const)
      expect(await looksAt(at, expected)).toBeLessThanOrEqual(5);
  });
});

test("the expected duration follows the earlier durations of the same kind", () => {
  const durations = makeDurations<number>();
  expect(durations.expected(1)).toBeUndefined();
  for (let i = 0; i < 50; i++) durations.took(1, 4);
  durations.took(2, 9);
  expect(durations.expected(1)).toBeCloseTo(4);
  expect(durations.expected(2)).toBe(9);
  for (let i = 0; i < 50; i++) durations.took(1, 8);
  expect(durations.expected(1)).toBeCloseTo(8);
});
