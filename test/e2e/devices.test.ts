/** `hearth devices` of the real program, with a software adapter and without any. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { swiftShaderEnv } from "../engine/backends/webgpu/swiftshader.ts";
import { runHearth } from "./hearth.ts";

setDefaultTimeout(60_000);

let home = "";
beforeAll(async () => void (home = await mkdtemp(join(tmpdir(), "hearth-devices-"))));
afterAll(() => rm(home, { recursive: true }));

test("devices names the adapter, says that it is a software adapter, and lists its limits", async () => {
  const env = await swiftShaderEnv();
  const { code, stdout } = await runHearth(["devices", "--json"], { env, home });
  expect(code).toBe(0);
  const limits = { maxStorageBufferBindingSize: 2 ** 30 };
  expect(JSON.parse(stdout)).toMatchObject([{ name: "SwiftShader Device (Subzero)", software: true, limits }]);
  const table = await runHearth(["devices"], { env, home });
  expect(table.stdout).toMatch(/^NAME.*\nSwiftShader Device \(Subzero\) +software/);
});

test("HEARTH_GPU selects an adapter by a part of its name; an unknown name is an error that lists the adapters", async () => {
  const probe = async (name: string, backend: string): Promise<{ code: number; stdout: string; stderr: string }> =>
    runHearth(["devices", "--backend", backend], { env: { ...(await swiftShaderEnv()), HEARTH_GPU: name }, home });
  const found = await probe("swiftshader", "auto"); // used although it is a software adapter, because it was named
  expect(JSON.parse(found.stdout)).toEqual({ backend: "webgpu", gpu: "SwiftShader driver 5.0.0" });
  for (const backend of ["auto", "webgpu"]) {
    const { code, stderr } = await probe("RTX 9", backend);
    expect(code).toBe(1);
    expect(stderr).toContain("HEARTH_GPU='RTX 9': no GPU has such a name; there are 'SwiftShader Device (Subzero)'");
  }
});

test("devices without a driver prints an empty list and the reason", async () => {
  const { code, stdout, stderr } = await runHearth(["devices", "--json"], { home, env: { LD_LIBRARY_PATH: home } });
  expect(code).toBe(0);
  if (JSON.parse(stdout).length > 0) return; // this machine may have one
  expect(stderr).toContain("no GPU adapter");
  const table = await runHearth(["devices"], { home, env: { LD_LIBRARY_PATH: home } });
  expect([table.code, table.stderr]).toEqual([0, ""]);
  expect(table.stdout).toMatch(/^Models run on the CPU here: .*no GPU adapter.*\.\nCPU kernels: .*\n$/);
});

test("devices --tune refuses a software adapter", async () => {
  const { code, stderr } = await runHearth(["devices", "--tune"], { env: await swiftShaderEnv(), home });
  expect(code).toBe(1);
  expect(stderr).toContain("'SwiftShader driver 5.0.0' is a software adapter: it runs the plain kernels");
});
