/** The choice among backends by name. */
import { expect, test } from "bun:test";
import type { Backend, LoadOptions, Program } from "../../../src/engine/program/backend.ts";
import { firstWithOps } from "../../../src/engine/backends/choose.ts";
import { chooseBackend } from "../../../src/engine/backends/index.ts";

test("no layer on the GPU means a backend without one, also where the GPU is named", async () => {
  for (const name of ["auto", "webgpu"]) {
    const { name: chosen } = await chooseBackend(name, { layers: 0 });
    expect(["simd", "onnx", "cpu"]).toContain(chosen);
  }
});

test("a backend without a GPU is what it is, whatever is wanted on a GPU", async () => {
  expect((await chooseBackend("cpu", { layers: 99 })).name).toBe("cpu");
  await expect(chooseBackend("vulkan")).rejects.toThrow(
    /backend 'vulkan': expected auto or one of webgpu, simd, onnx, wasm, cpu/,
  );
});

test("a program with an op that a backend lacks goes to the next one, and to none where all lack it", async () => {
  const program = { shape: { arch: "few" } } as Program;
  const lacking = (name: string, missing: readonly string[]): Backend => ({
    name,
    missing: () => missing,
    load: () => Promise.reject(new Error(`${name} loads it`)),
  });
  const [first, second] = [lacking("first", ["deltaRule"]), lacking("second", [])];
  const load = (...backends: Backend[]) => {
    const candidates = backends.map((backend) => [backend.name, { open: async () => backend }] as const);
    return firstWithOps(candidates).load(program, {} as LoadOptions);
  };
  await expect(load(first, second)).rejects.toThrow("second loads it");
  await expect(load(second, first)).rejects.toThrow("second loads it");
  await expect(load(first)).rejects.toThrow("first loads it");
});
