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

test("every kind of layer agrees with the reference on a device of the least limits", () => {
  expect(report.limits).toMatchObject({ maxStorageBuffersPerShaderStage: 8, maxStorageBufferBindingSize: 2 ** 27 });
  expect(Object.keys(report.differences).length).toBeGreaterThanOrEqual(9);
  for (const [name, worst] of Object.entries(report.differences)) expect(worst, name).toBeLessThanOrEqual(1);
});

test("runs of more rows than a uniform buffer describes are refused", () => {
  expect(report.refused).toEndWith("wkv: expected at most 1365 rows at once, got 1366");
});

test("the default context and the memories of slots fit the least bindings, and more slots are refused", () => {
  expect(report.tokensMax).toBe(2 ** 27 / (4 * 1024));
  const bytes = 6404 * 8 * 128 * 2; // keys of a slot
  expect(report.memories).toEqual({ once: 2 * bytes, slotsMax: Math.floor(2 ** 27 / bytes) });
  expect(report.memoriesRefused).toEndWith(
    `keys of layer 1 for 11 memories of 6404 rows: the GPU binds ${2 ** 27} bytes at once, got ${11 * bytes}`,
  );
});
