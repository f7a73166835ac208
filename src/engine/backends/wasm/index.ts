/**
 * The SIMD kernels as WebAssembly: for pages, and for hosts without a usable library. Lowering, session and KV cache
 * are the SIMD backend's; weights are copied into the module's memory.
 */
import type { Backend } from "../../program/backend.ts";
import { checkOps, missingOps } from "../missing-ops.ts";
import { ops, variants } from "../simd/lower.ts";
import { slotBytes } from "../simd/kv.ts";
import { makeSession } from "../simd/session.ts";
import { makeWasmMemory } from "./memory.ts";
import { checkRoom } from "./room.ts";
import { startWasmThreadPool, type StartThread } from "./threads.ts";

export interface WasmHost {
  /** The kernels' module (`kernels/simd/lib/simd.wasm`), and the id of its build. */
  readonly kernels: () => Promise<{ bytes: Uint8Array<ArrayBuffer>; build: string }>;
  /** Undefined if memory cannot be shared: then there is one thread. */
  readonly startThread: StartThread | undefined;
  /** Default number of threads. */
  readonly cores: () => number;
}

export function makeWasmBackend({ kernels, startThread, cores }: WasmHost): Backend {
  /** Compiled once for all sessions, which share the machine code that the engine optimizes at run time. */
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
      checkRoom(program, options);
      compiled ??= compile().catch((error: unknown) => {
        compiled = undefined; // a failed download may succeed the next time
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
        panelRows: 8,
        threads,
        memory,
        start: (header) => startWasmThreadPool(header, { module, memory, threads, startThread }),
      });
    },
  };
}
