/** Growth of the KV cache: memory on the device, and results. */
import { beforeAll, expect, test } from "bun:test";
import { resolve } from "node:path";
import type { Growing } from "./growing.ts";
import { swiftShaderEnv } from "./swiftshader.ts";

let report: Growing;
beforeAll(async () => {
  const child = Bun.spawn([process.execPath, resolve(import.meta.dir, "growing.ts")], {
    env: { ...process.env, ...(await swiftShaderEnv()) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  report = JSON.parse(await new Response(child.stdout).text());
}, 120_000);

test("a cache has room for the slots and positions in use, not for all", () => {
  const { tokenBytes, full, bytes } = report;
  expect(full).toBe(3 * 6000 * tokenBytes);
  expect(bytes.map((each) => each / tokenBytes)).toEqual([
    1024, // one slot after the load
    1024,
    1024,
    2 * 1024, // a second slot
    2 * 1024,
    2 * 2048, // positions
    3 * 2048, // a copy into a third slot
    3 * 2048,
    3 * 2048,
    3 * 2048,
  ]);
});

test("a growing cache gives the bits of a cache of full size in runs, copies, shifts and blocks", () => {
  expect(report.same).toEqual(Array.from({ length: 9 }, () => true));
});

test("a run without room for its tokens fails as busy, and succeeds once there is room", () => {
  const { code, message } = report.refused;
  expect(code).toBe("busy");
  expect(message).toMatch(
    /out of memory: keys and values of 4096 tokens: .*KV cache: GPU '.*' has no room for \d+ bytes/,
  );
  expect(report.retried).toBe(true);
});

test("a run of a closed model is cancelled with the reason, and other models on the device give their results", () => {
  const whileRunning = "cancelled: the model was closed while it ran";
  const whileGrowing = "cancelled: the model was closed while its KV cache grew";
  expect(report.closed).toEqual([whileRunning, whileRunning, whileGrowing, whileRunning]);
  expect(report.unharmed).toBe(true);
});
