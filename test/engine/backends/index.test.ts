/** The choice among backends by name. */
import { expect, test } from "bun:test";
import type { Backend, LoadOptions, Program, Session } from "../../../src/engine/program/backend.ts";
import { AppError } from "../../../src/base/index.ts";
import type { Sheet } from "../../../src/engine/backends/selftest/sheet.ts";
import { makeSheets } from "../../../src/engine/backends/selftest/sheets.ts";
import { firstWithOps } from "../../../src/engine/backends/choose.ts";
import { chooseBackend, NO_LEVEL, WASM_LEVEL } from "../../../src/engine/backends/index.ts";

test("a request for no layer on the GPU chooses a backend without a GPU, even if one is named", async () => {
  for (const name of ["auto", "webgpu"]) {
    const { name: chosen } = await chooseBackend(name, { layers: 0 });
    expect(["simd", "wasm", "onnx", "cpu"]).toContain(chosen);
  }
});

test("a named backend without a GPU is chosen for any number of GPU layers, and an unknown name is refused", async () => {
  expect((await chooseBackend("cpu", { layers: 99 })).name).toBe("cpu");
  await expect(chooseBackend("vulkan")).rejects.toThrow(
    /backend 'vulkan': expected auto or one of webgpu, simd, wasm, onnx, cpu/,
  );
});

test("a program with an op that a backend lacks is loaded on the next one, and the last one loads any program", async () => {
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

test("a program that a backend refuses is tried on the next, and the final error says where it was too large", async () => {
  const program = { shape: { arch: "large" } } as Program;
  const session = (name: string): Session => ({ backend: name }) as Session;
  const backend = (name: string, load: () => Promise<Session>): Backend => ({ name, load });
  const refusing = (name: string, code: "unsupported" | "too_large" | "bad_file"): Backend =>
    backend(name, () => Promise.reject(new AppError(code, `${name}: ${code}`)));
  const load = (...backends: Backend[]) =>
    firstWithOps(backends.map((each) => [each.name, { open: async () => each }] as const)).load(
      program,
      {} as LoadOptions,
    );
  const cpu = backend("cpu", async () => session("cpu"));
  expect((await load(refusing("wasm", "too_large"), cpu)).backend).toBe("cpu");
  expect((await load(refusing("simd", "unsupported"), refusing("wasm", "too_large"), cpu)).backend).toBe("cpu");
  // where the machine has no room on one backend, it has none on another
  await expect(load(refusing("simd", "too_large"), cpu)).rejects.toThrow("simd: too_large");
  await expect(load(refusing("simd", "bad_file"), cpu)).rejects.toThrow("simd: bad_file");
  const none = load(refusing("wasm", "too_large"), refusing("onnx", "unsupported"), refusing("cpu", "unsupported"));
  await expect(none).rejects.toThrow("wasm: too_large");
});

test("a program runs on WebAssembly if every kernel library failed its self-test, unless that failed too", async () => {
  const [{ program, options }] = makeSheets() as [Sheet];
  const chosen = await chooseBackend("auto", { layers: 0 });
  const load = async (chosenOf: Backend, simdLevel: string): Promise<string> => {
    const session = await chosenOf.load(program, {
      ...options,
      precise: true,
      threads: 1,
      cacheDir: undefined,
      simdLevel,
    });
    session.close();
    return session.backend;
  };
  expect(await load(chosen, WASM_LEVEL)).toBe("wasm");
  expect(["onnx", "cpu"]).toContain(await load(chosen, NO_LEVEL));
  const refused = load(await chooseBackend("wasm"), NO_LEVEL);
  await expect(refused).rejects.toThrow("the WebAssembly kernels failed their self-test");
});
