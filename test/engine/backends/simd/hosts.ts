/**
 * The SIMD backend on another processor than this machine's, under qemu, which shares memory with this process through
 * a file. One thread.
 */
import { closeSync, ftruncateSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Backend } from "../../../../src/engine/program/backend.ts";
import type { Block, Memory, Placed } from "../../../../src/engine/backends/simd/memory.ts";
import type { Engine } from "../../../../src/engine/backends/simd/passes.ts";
import { makeSession } from "../../../../src/engine/backends/simd/session.ts";
import { layOut } from "./image.ts";

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
  { level, features, panelRows, words = false }: Pick<Engine, "level" | "features" | "panelRows" | "words">,
  memory: () => Memory,
  run: (header: number) => void,
): Backend => ({
  name: "simd",
  load: async (program, options) => {
    const runPass = (header: number) => ({ run: () => run(header), runAlone: () => run(header) });
    const start = (header: number) => ({ ...runPass(header), dismiss: (gone: () => void) => gone() });
    const kernels = { level, build: "", features, words, panelRows };
    return makeSession(program, options, { backend: "simd", ...kernels, threads: 1, memory: memory(), start });
  },
});

/** The same as in emulated.c. */
const BASE = 0x10_0000_0000;
const BYTES = 512 * 2 ** 20;
const [HEADER_AT, KERNELS_AT] = [8, 16];
/** Offset of a library, and of the memory of sessions after it. */
const [IMAGE_AT, MEMORY_AT] = [2 ** 16, 2 ** 20];

/** Processors, and their emulators. */
const EMULATED = {
  /** Has the features of today's arm64 processors, including I8MM. */
  arm64: { target: "aarch64", cpu: "max" },
  /** The processor of the Raspberry Pi 4, without instructions for dot products. */
  "arm64 of 2016": { target: "aarch64", cpu: "cortex-a72" },
  /** Has no AVX-VNNI and no AVX-512, as Intel's processors from Haswell to Comet Lake. */
  x64: { target: "x86_64", cpu: "max" },
} as const;
type Machine = keyof typeof EMULATED;

const emulatorOf = (machine: Machine): string => `qemu-${EMULATED[machine].target}`;

export const canEmulate = (machine: Machine): boolean =>
  ["clang-19", "ld.lld-19", emulatorOf(machine)].every((name) => Bun.which(name) !== null);

export interface Emulated {
  /** @param features as `FEATURES` */
  backend(features: number): Backend;
  stop(): Promise<void>;
}

/** Starts a program in an emulator that calls a library of ours, for any system, whenever the shared file says so. */
export function startEmulated(machine: Machine, library: string): Emulated {
  const { target, cpu } = EMULATED[machine];
  const folder = mkdtempSync(join(tmpdir(), "hearth-emulated-"));
  const [program, file] = [join(folder, "kernels"), join(folder, "memory")];
  const source = join(import.meta.dir, "emulated.c");
  const flags = `--target=${target}-linux-gnu -Os -ffreestanding -fno-stack-protector -nostdlib -static -fuse-ld=lld-19`;
  const command = ["clang-19", ...flags.split(" "), source, "-o", program];
  const built = Bun.spawnSync(command, { stdio: ["ignore", "ignore", "pipe"] });
  if (built.exitCode !== 0) throw new Error(built.stderr.toString());
  const descriptor = openSync(file, "w+");
  ftruncateSync(descriptor, BYTES);
  closeSync(descriptor);
  const bytes = Bun.mmap(file, { shared: true });
  const image = layOut(readFileSync(library));
  bytes.set(image.bytes, IMAGE_AT);
  const emulate = [emulatorOf(machine), "-cpu", cpu, program, file];
  const child = Bun.spawn(emulate, { stdio: ["ignore", "inherit", "inherit"] });
  const word = new Int32Array(bytes.buffer, bytes.byteOffset, 1);
  const header = new BigUint64Array(bytes.buffer, bytes.byteOffset + HEADER_AT, 1);
  const kernels = new BigUint64Array(bytes.buffer, bytes.byteOffset + KERNELS_AT, 1);
  kernels[0] = BigInt(BASE + IMAGE_AT + image.exports.get("hearth_run")!);
  const run = (address: number): void => {
    header[0] = BigInt(address);
    Atomics.store(word, 0, 1);
    const end = performance.now() + 60_000;
    while (Atomics.load(word, 0) === 1) {
      Bun.sleepSync(1); // a shorter sleep would keep a core busy
      if (performance.now() > end || child.exitCode !== null) throw new Error("the emulated processor is gone");
    }
  };
  const memory = () => makeBumpMemory(bytes, { base: BASE, from: MEMORY_AT });
  return {
    backend: (features) => backendOf({ level: machine, features, panelRows: 8 }, memory, run),
    async stop() {
      child.kill("SIGKILL");
      await child.exited;
      rmSync(folder, { recursive: true });
    },
  };
}
