/** Machines and model files for the table of docs/platforms.md, and the choice of a backend on each. */
import { writeGguf, type WriteModel } from "../../../src/engine/formats/files/write.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import { chooseAmong, type Choices } from "../../../src/engine/backends/choose.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { levelsOf, type MachineFacts } from "../../../src/engine/backends/host/simd-library.ts";
import { simdBackend } from "../../../src/engine/backends/host/simd.ts";
import { wasmBackend } from "../../../src/engine/backends/host/wasm.ts";
import { webGpuBackend } from "../../../src/engine/backends/host/webgpu.ts";
import { checkOps } from "../../../src/engine/backends/missing-ops.ts";
import { onnxBackend } from "../../../src/engine/backends/onnx/index.ts";
import { checkRoom, weightBytes } from "../../../src/engine/backends/wasm/room.ts";
import type { Backend, LoadOptions, Program, Session } from "../../../src/engine/program/backend.ts";
import { withWeights } from "../../../src/engine/program/describe.ts";
import { ops as gpuOps, variants as gpuVariants } from "../../../kernels/wgsl/lower.ts";
import { neededBytes } from "../../../src/runtime/processes/room.ts";
import { makeModel } from "../architectures/models.ts";
import { makeOutline, readOutlines } from "../architectures/outlines.ts";

export interface File {
  readonly name: string;
  readonly gigabytes: number;
  /** Its architecture, with other sizes. */
  readonly model: () => WriteModel;
}

const small = (name: string) => (): WriteModel => makeModel(name);
const outlined = (name: string) => (): WriteModel => makeOutline(name, readOutlines().get(name)!);

/** Files as users pull them, mostly with four bits. */
export const FILES: readonly File[] = [
  { name: "LFM2 1.2B", gigabytes: 0.7, model: small("lfm2") },
  { name: "Gemma 3 4B", gigabytes: 3.3, model: small("gemma3") },
  { name: "Granite 4 tiny", gigabytes: 4.2, model: outlined("granitehybrid-dense") },
  { name: "Qwen 2.5 7B", gigabytes: 4.7, model: small("qwen2") },
  { name: "Llama 3.1 8B", gigabytes: 4.9, model: small("llama") },
  { name: "Qwen 3.5 9B", gigabytes: 6, model: small("qwen35") },
  { name: "DeepSeek V2 lite", gigabytes: 8.9, model: small("deepseek2") },
  { name: "Phi 4 14B", gigabytes: 9.1, model: small("phi3") },
  { name: "Gemma 4 E4B", gigabytes: 9.6, model: small("gemma4") },
  { name: "gpt-oss 20B", gigabytes: 14, model: small("gpt-oss") },
  { name: "Mistral Small 24B", gigabytes: 14, model: small("mistral3") },
  { name: "Qwen 3 30B", gigabytes: 19, model: small("qwen3moe") },
];

export interface Machine {
  readonly name: string;
  readonly facts: MachineFacts;
  readonly gigabytes: number;
  /** Each kernel library failed its self-test. */
  readonly untrusted?: true;
  /** It has a GPU, which shares the machine's memory. */
  readonly sharedGpu?: true;
  /** ONNX Runtime has no library for it. */
  readonly lacksOnnx?: true;
}

const has = (...features: string[]): Pick<MachineFacts, "has" | "halves"> => ({
  has: new Set(features),
  halves: false,
});
const sse = ["ssse3", "sse4_1"];
const avx2 = [...sse, "avx2", "fma", "f16c", "bmi1", "bmi2", "movbe"];

export const MACHINES: readonly Machine[] = [
  { name: "PC with AVX2, 16 GB", facts: { platform: "linux", arch: "x64", ...has(...avx2) }, gigabytes: 16 },
  {
    name: "Windows PC without AVX2, 8 GB",
    facts: { platform: "win32", arch: "x64", ...has(...sse) },
    gigabytes: 8,
  },
  {
    name: "Mac with M1, 8 GB",
    facts: { platform: "darwin", arch: "arm64", ...has("asimd", "asimddp", "fphp", "asimdhp") },
    gigabytes: 8,
    sharedGpu: true,
  },
  { name: "Raspberry Pi 4, 8 GB", facts: { platform: "linux", arch: "arm64", ...has("asimd") }, gigabytes: 8 },
  {
    name: "PC whose kernel libraries fail, 16 GB",
    facts: { platform: "win32", arch: "x64", ...has(...avx2) },
    gigabytes: 16,
    untrusted: true,
  },
  {
    name: "Alpine without SSE 4.1, 8 GB",
    facts: { platform: "linux", arch: "x64", ...has() },
    gigabytes: 8,
    lacksOnnx: true,
  },
];

const GB = 1e9;

/** The program of such a file: the steps of its architecture, with weights of the file's size. */
export async function programOf({ gigabytes, model }: File, path: string): Promise<Program> {
  await writeGguf(path, model());
  const gguf = openGguf(path);
  const program = loadProgram(gguf);
  gguf.close();
  const scale = (gigabytes * GB) / weightBytes(program);
  const steps = program.steps.map((step) => withWeights(step, (w) => ({ ...w, tensorRows: w.tensorRows * scale })));
  return { ...program, steps };
}

/** The chosen backend: its name, and the bytes of the machine's memory that it takes. */
export async function choiceOn(machine: Machine, program: Program): Promise<{ backend: string; bytes: number }> {
  const options: LoadOptions = { ctxLen: 4096, slots: 1, precise: false, threads: 1, cacheDir: undefined };
  // two thirds are the GPU's, as `gpuMemoryHere` has it
  const memory = machine.sharedGpu && (machine.gigabytes * GB * 2) / 3;
  const backend = await chooseAmong(choicesOf(machine), "auto", { memory });
  const session = await backend.load(program, options);
  return { backend: session.backend, bytes: session.bytes.weights };
}

/** Backends that check a program like the real ones, and then only report what they would take. */
function choicesOf({ facts, untrusted, sharedGpu, lacksOnnx }: Machine): Choices {
  const isReady = (answer: boolean, reason: string) => () => (answer ? undefined : reason);
  const level = untrusted ? undefined : levelsOf(facts)[0];
  const planned = (real: Backend, name: string, check: (program: Program, options: LoadOptions) => void) => ({
    open: async (): Promise<Backend> => ({
      name,
      ...(real.missing && { missing: real.missing }),
      async load(program, options) {
        check(program, options);
        const weights = neededBytes({ weightBytes: weightBytes(program) }, real.name);
        return { backend: name, bytes: { weights, kv: 0, scratch: 0 } } as Session;
      },
    }),
  });
  const gpuCheck = (program: Program) => checkOps(program, { name: "webgpu", ops: gpuOps, variants: gpuVariants });
  const gpu = planned(webGpuBackend, "webgpu", gpuCheck);
  const neededOnGpu = async (program: Program): Promise<number> => {
    gpuCheck(program);
    return weightBytes(program);
  };
  return {
    webgpu: {
      unavailable: () => undefined,
      refuses: async () => (sharedGpu ? undefined : "no GPU"),
      open: async () => ({ ...(await gpu.open()), neededBytes: neededOnGpu }),
    },
    simd: {
      unavailable: isReady(level !== undefined, "no level"),
      ...planned(simdBackend, `simd, ${level?.title}`, () => undefined),
    },
    wasm: { unavailable: () => undefined, ...planned(wasmBackend, "wasm", checkRoom) },
    onnx: { unavailable: isReady(!lacksOnnx, "no library"), ...planned(onnxBackend, "onnx", () => undefined) },
    cpu: { unavailable: () => undefined, ...planned(cpuBackend, "cpu", () => undefined) },
  };
}

/** The row of a file: what runs it on each machine. */
async function rowOf(file: File, program: Program): Promise<string[]> {
  const cells = [`${file.name}, ${file.gigabytes} GB`];
  for (const machine of MACHINES) {
    const { backend, bytes } = await choiceOn(machine, program);
    cells.push(`${backend}, ${(bytes / GB).toFixed(1)} GB${bytes > machine.gigabytes * GB ? "*" : ""}`);
  }
  return cells;
}

/** The table, in Markdown. @param path of a file that is written for each model */
export async function makeTable(path: string): Promise<string> {
  const rows = [
    ["Model", ...MACHINES.map(({ name }) => name)],
    ["-", ...MACHINES.map(() => "-")],
  ];
  for (const file of FILES) rows.push(await rowOf(file, await programOf(file, path)));
  return rows.map((row) => `| ${row.join(" | ")} |\n`).join("");
}

/** The table's position in the page. */
export const TABLE = /^\| Model +\| PC(?:.*\n)(?:\|.*\n)+/m;
