/** The smallest tier of devices: 8 storage buffers, bindings of 128 MiB, 16 KiB of workgroup memory. */
import { beforeAll, expect, test } from "bun:test";
import { resolve } from "node:path";
import type { Smallest } from "./smallest.ts";
import { swiftShaderEnv } from "./swiftshader.ts";

let report: Smallest;
beforeAll(async () => {
  const child = Bun.spawn([process.execPath, resolve(import.meta.dir, "smallest.ts")], {
    env: { ...process.env, ...(await swiftShaderEnv()) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  report = JSON.parse(await new Response(child.stdout).text());
}, 1_800_000);

test("attention, dense layers and experts run there without the fusions that need more buffers", () => {
  expect(report.limits).toMatchObject({ maxStorageBuffersPerShaderStage: 8, maxStorageBufferBindingSize: 2 ** 27 });
  expect(Object.keys(report.differences).length).toBeGreaterThanOrEqual(7);
  for (const [name, worst] of Object.entries(report.differences)) expect(worst, name).toBeLessThanOrEqual(1);
});

test("HEARTH_TEST_CASES=all: every other case is refused by the name of its step", () => {
  for (const refusal of report.refusals) expect(refusal).toMatch(/step \d+ \(\w+\): the GPU binds 8 storage buffers/);
});

test("a step whose kernel binds more is refused by its name, so that its layers stay on the CPU", () => {
  expect(report.refused).toMatch(/step \d+ \(deltaRule\): the GPU binds 8 storage buffers at once, got 9$/);
});

test("the default context fits its bindings", () => {
  expect(report.tokensMax).toBe(2 ** 27 / (4 * 1024));
});
