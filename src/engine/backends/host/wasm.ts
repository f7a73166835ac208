/** The WebAssembly backend in a process: for machines where neither our libraries nor ONNX Runtime's run. */
import { readFileSync } from "node:fs";
import { programFile } from "../../../base/system.ts";
import { physicalCores } from "../onnx/threads.ts";
import { makeWasmBackend } from "../wasm/index.ts";

export const wasmBackend = makeWasmBackend({
  async kernels() {
    const bytes = new Uint8Array(readFileSync(programFile("kernels/simd/lib/simd.wasm")));
    return { bytes, build: Bun.hash.xxHash3(bytes).toString(36) };
  },
  startThread() {
    const worker = new Worker(new URL("../wasm/worker.ts", import.meta.url));
    worker.unref(); // a process without other work may end
    return worker;
  },
  cores: physicalCores,
});
