/**
 * The SIMD kernels as WebAssembly: for pages, and for hosts where no library of ours runs. The lowering, the session
 * and the KV cache are those of the SIMD backend; weights are copied into the module's memory.
 */
import type { Backend } from "../../program/backend.ts";
import { checkOps, missingOps } from "../missing.ts";
import { ops, variants } from "../simd/lower.ts";
import { slotBytes } from "../simd/kv.ts";
import { makeSession } from "../simd/session.ts";
import { makeWasmMemory } from "./memory.ts";
import { startWasmCrew, type StartThread } from "./threads.ts";

export interface WasmHost {
  /** The kernels' module (`kernels/simd/lib/simd.wasm`), and what tells it from other builds. */
  readonly kernels: () => Promise<{ bytes: Uint8Array<ArrayBuffer>; build: string }>;
  /** Undefined where memory cannot be shared: one thread then. */
  readonly startThread: StartThread | undefined;
  /** Threads where nobody says how many. */
  readonly cores: () => number;
}

export function makeWasmBackend({ kernels, startThread, cores }: WasmHost): Backend {
  /** Compiled once for all sessions, which share the machine code that the engine makes of it while it runs. */
  let compiled: Promise<{ module: WebAssembly.Module; build: string }> | undefined;
  const compile = async () => {
    const { bytes, build } = await kernels();
    return { module: await WebAssembly.compile(bytes), build };
  };
  return {
    name: "wasm",
    missing: (program) => missingOps(program, { ops, variants }),
    slotBytes,
    async load(program, options) {
      checkOps(program, { name: "wasm", ops, variants });
      compiled ??= compile().catch((error: unknown) => {
        compiled = undefined; // kernels that could not be fetched can be there the next time
        throw error;
      });
      const { module, build } = await compiled;
      const threads = startThread ? options.threads || cores() : 1;
      const memory = makeWasmMemory();
      return makeSession(program, options, {
        backend: "wasm",
        level: "WebAssembly",
        build,
        features: 0,
        threads,
        memory,
        start: (header) => startWasmCrew(header, { module, memory, threads, startThread }),
      });
    },
  };
}
