/**
 * The SIMD backend on another processor than this machine's, under qemu, which shares memory with this process through
 * a file. One thread.
 */
import { closeSync, ftruncateSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Backend } from "../../../../src/engine/program/backend.ts";
import type { Block, Memory, Placed } from "../../../../src/engine/backends/simd/memory.ts";
import { makeSession } from "../../../../src/engine/backends/simd/session.ts";

const KERNELS = resolve(import.meta.dir, "../../../../kernels/simd");
const ALIGNMENT = 64;

/** Memory inside a buffer, whose byte `from` has the address base + from. Placed views are copied into it. */
function makeBumpMemory(bytes: Uint8Array, { base, from }: { base: number; from: number }): Memory {
  let next = from;
  const placed = new Map<Placed, Block>();
  const raw = (view: Placed): Uint8Array => new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  const memory: Memory = {
    get bytes() {
      return next - from;
    },
    allocate(size, what) {
      const at = Math.ceil(next / ALIGNMENT) * ALIGNMENT;
      if (at + size > bytes.length) throw new Error(`${what}: ${size} bytes behind ${at} of ${bytes.length}`);
      next = at + size;
      const view = bytes.subarray(at, at + size);
      view.fill(0);
      return { address: base + at, view };
    },
    place(view) {
      const block = placed.get(view) ?? memory.allocate(view.byteLength, "a placed view");
      block.view.set(raw(view));
      placed.set(view, block);
      return block.address;
    },
    refresh(views) {
      for (const view of views) placed.get(view)?.view.set(raw(view));
    },
    release: () => placed.clear(),
  };
  return memory;
}

/** The backend with kernels that `run` runs, one thread, and the given processor features. */
export const backendOf = (
  { level, features }: { level: string; features: number },
  memory: () => Memory,
  run: (header: number) => void,
): Backend => ({
  name: "simd",
  load: async (program, options) => {
    const runPass = (header: number) => ({ run: () => run(header), runAlone: () => run(header) });
    const start = (header: number) => ({ ...runPass(header), dismiss: (gone: () => void) => gone() });
    const engine = { backend: "simd", level, build: "", features, threads: 1, memory: memory(), start };
    return makeSession(program, options, engine);
  },
});

/** The same as in emulated.c. */
const BASE = 0x10_0000_0000;
const BYTES = 512 * 2 ** 20;
const HEADER_AT = 8;

/** Compiler flags of a library's kernels, and the emulator of its processor. */
const EMULATED = {
  arm64: {
    target: "--target=aarch64-linux-gnu -march=armv8.2-a+dotprod+fp16 -mno-outline-atomics",
    emulator: "qemu-aarch64",
  },
  /** Without AVX-VNNI and AVX-512, like Intel's processors from Haswell to Comet Lake. */
  x64: { target: "--target=x86_64-linux-gnu -march=x86-64-v3", emulator: "qemu-x86_64" },
} as const;
type Arch = keyof typeof EMULATED;

export const canEmulate = (arch: Arch): boolean =>
  ["clang-19", "ld.lld-19", EMULATED[arch].emulator].every((name) => Bun.which(name) !== null);

export interface Emulated {
  /** @param features as `FEATURES` */
  backend(features: number): Backend;
  stop(): Promise<void>;
}

/**
 * Compiles the kernels to a program for an emulator: it runs a pass whenever the shared file's first word requests it.
 */
export function startEmulated(arch: Arch): Emulated {
  const { target, emulator } = EMULATED[arch];
  const folder = mkdtempSync(join(tmpdir(), `hearth-${arch}-`));
  const [program, file] = [join(folder, "kernels"), join(folder, "memory")];
  const more =
    "-Os -std=gnu11 -ffreestanding -fno-stack-protector -ffp-contract=off -fno-math-errno -Wno-psabi -nostdlib -static";
  const source = join(import.meta.dir, "emulated.c");
  const flags = `${target} ${more} -fuse-ld=lld-19 -I${KERNELS}`.split(" ");
  const built = Bun.spawnSync(["clang-19", ...flags, source, "-o", program], { stdio: ["ignore", "ignore", "pipe"] });
  if (built.exitCode !== 0) throw new Error(built.stderr.toString());
  const descriptor = openSync(file, "w+");
  ftruncateSync(descriptor, BYTES);
  closeSync(descriptor);
  const bytes = Bun.mmap(file, { shared: true });
  const child = Bun.spawn([emulator, "-cpu", "max", program, file], { stdio: ["ignore", "inherit", "inherit"] });
  const word = new Int32Array(bytes.buffer, bytes.byteOffset, 1);
  const header = new BigUint64Array(bytes.buffer, bytes.byteOffset + HEADER_AT, 1);
  const run = (address: number): void => {
    header[0] = BigInt(address);
    Atomics.store(word, 0, 1);
    const end = performance.now() + 60_000;
    while (Atomics.load(word, 0) === 1) {
      Bun.sleepSync(1); // a shorter sleep would keep a core busy
      if (performance.now() > end || child.exitCode !== null) throw new Error("the emulated processor is gone");
    }
  };
  const memory = () => makeBumpMemory(bytes, { base: BASE, from: 4096 });
  return {
    backend: (features) => backendOf({ level: arch, features }, memory, run),
    async stop() {
      child.kill("SIGKILL");
      await child.exited;
      rmSync(folder, { recursive: true });
    },
  };
}
