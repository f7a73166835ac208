/** The WebAssembly backend with a test's own kernels. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { makeWasmBackend } from "../../../src/engine/backends/wasm/index.ts";
import { conformanceCases, runCase } from "../../conformance/cases.ts";

const KERNELS = resolve(import.meta.dir, "../../../kernels/simd/lib/simd.wasm");

test("the kernels are fetched once for all sessions, and again after a failed fetch", async () => {
  let fetched = 0;
  const backend = makeWasmBackend({
    async kernels() {
      if (++fetched === 1) throw new Error("the network is gone");
      return { bytes: new Uint8Array(readFileSync(KERNELS)), build: "test" };
    },
    startThread: undefined,
    cores: () => 1,
  });
  const [one] = conformanceCases();
  await expect(runCase(backend, one!)).rejects.toThrow("the network is gone");
  const answers = await Promise.all([runCase(backend, one!), runCase(backend, one!)]);
  expect(answers[1]).toEqual(answers[0]!);
  expect(fetched).toBe(2);
});
