/** The WebAssembly backend in a process, for machines on which neither our libraries nor ONNX Runtime's run. */
import { readFileSync } from "node:fs";
import { AppError } from "../../../base/index.ts";
import type { Backend } from "../../program/backend.ts";
import { physicalCores } from "../onnx/threads.ts";
import { makeWasmBackend } from "../wasm/index.ts";
import { NO_LEVEL, wasmFile } from "./simd-library.ts";

export const wasmBackend = makeHostWasm(wasmFile);

/** The backend with the kernels of a file, which is read at the first load. */
export function makeHostWasm(file: () => string): Backend {
  const backend = makeWasmBackend({
    async kernels() {
      const bytes = new Uint8Array(readFileSync(file()));
      return { bytes, build: Bun.hash.xxHash3(bytes).toString(36) };
    },
    startThread() {
      const worker = new Worker(new URL("../wasm/worker.ts", import.meta.url));
      worker.unref(); // does not keep a process alive
      return worker;
    },
    cores: physicalCores,
  });
  return {
    ...backend,
    async load(program, options) {
      if (options.simdLevel !== NO_LEVEL) return backend.load(program, options);
      throw new AppError("unsupported", "the WebAssembly kernels failed their self-test: see 'hearth selftest'");
    },
  };
}
