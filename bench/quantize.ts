/**
 * Time to quantize a model by Hearth and by llama.cpp, on the same file and with the same number of threads,
 * alternated, medians, by the clock and of the processor (user and system); and the number of tensors that differ.
 * Without FILE it makes the random-weight model of 1.2 B parameters in half floats.
 *
 *   bun bench/quantize.ts [q4_K_M q4_0 q8_0 …] [--file FILE.gguf] [--rounds 3] [--threads N] [--peer-program FILE]
 *     [--out FOLDER] [--record]
 *
 * --peer-program: a `llama-quantize`, built for this CPU; else `llama_model_quantize`, which it calls, of
 * node-llama-cpp's library. --out: the folder for results, which are removed; default: a temporary folder.
 */
import { dlopen, ptr } from "bun:ffi";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { openGguf } from "../src/engine/formats/files/gguf.ts";
import { fileTypeId, parseFileType } from "../src/library/create/quantize-mix.ts";
import { ensureModel } from "./make-model.ts";
import { writeRecord, type Figure } from "./report/record.ts";

const { values: flags, positionals } = parseArgs({
  options: {
    file: { type: "string" },
    rounds: { type: "string", default: "3" },
    threads: { type: "string", default: String(availableParallelism()) },
    "peer-program": { type: "string" },
    out: { type: "string", default: tmpdir() },
    record: { type: "boolean", default: false },
    /** internal: this process is llama.cpp's side, with IN OUT TYPE */
    peer: { type: "boolean", default: false },
  },
  allowPositionals: true,
});
const threads = Number(flags.threads);

if (flags.peer) quantizeByLlama(positionals as [string, string, string]);
else await compare(positionals.length > 0 ? positionals : ["q4_K_M", "q4_0", "q8_0"]);

async function compare(types: readonly string[]): Promise<void> {
  const file = flags.file ? resolve(flags.file) : await ensureModel("f16", join(import.meta.dir, "out"));
  const folder = mkdtempSync(join(flags.out, "hearth-quantize-"));
  try {
    const figures = types.flatMap((type) => compareType(type, file, folder));
    if (flags.record) writeRecord("quantize", { title: "Quantizing the 1.2 B F16 file", figures });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function compareType(type: string, file: string, folder: string): Figure[] {
  const seconds: Record<"hearth" | "llama.cpp", Seconds[]> = { hearth: [], "llama.cpp": [] };
  for (let round = 0; round < Number(flags.rounds); round++) {
    for (const side of ["hearth", "llama.cpp"] as const) {
      seconds[side].push(timeOf(side, [file, join(folder, side), type]));
    }
  }
  const different = differences(join(folder, "hearth"), join(folder, "llama.cpp"));
  const name = flags["peer-program"] ? "llama-quantize" : "llama.cpp";
  const times = (["clock", "processor"] as const).map((measure): Figure => {
    const [ours, rounds] = [seconds.hearth, seconds["llama.cpp"]].map((all) => all.map((s) => s[measure]));
    const [left, right] = [median(ours!), median(rounds!)]; // there are two sides
    console.log(
      `${type.padEnd(8)} ${measure} ${left.toFixed(1)} : ${right.toFixed(1)} s = ${(left / right).toFixed(2)}`,
    );
    const figure = {
      what: type,
      measure: `time by the ${measure}`,
      unit: "s",
      ours: ours!,
      peer: { name, rounds: rounds! },
    };
    return measure === "clock" ? { ...figure, goal: { of: "ratio", atMost: 1 } } : figure;
  });
  console.log(
    `${different} tensors differ; ${threads} threads, ${flags.rounds} rounds, load ${loadavg()[0]!.toFixed(1)}`,
  );
  const goal = { of: "value", atMost: 0 } as const;
  return [...times, { what: type, measure: "tensors that differ", unit: "", ours: [different], goal }];
}

/** Number of tensors that only one file has, or that differ in type or bytes. */
function differences(...paths: [string, string]): number {
  const [ours, theirs] = [openGguf(paths[0]), openGguf(paths[1])];
  const names = new Set([...ours.tensors.keys(), ...theirs.tensors.keys()]);
  const isEqual = (name: string): boolean => {
    const [a, b] = [ours.tensors.get(name), theirs.tensors.get(name)];
    return a !== undefined && a.quant === b?.quant && Buffer.compare(ours.read(name), theirs.read(name)) === 0;
  };
  const count = [...names].filter((name) => !isEqual(name)).length;
  ours.close();
  theirs.close();
  return count;
}

interface Seconds {
  readonly clock: number;
  readonly processor: number;
}

function timeOf(side: "hearth" | "llama.cpp", paths: readonly string[]): Seconds {
  const startedMs = performance.now();
  const child = Bun.spawnSync(commandOf(side, paths), { stdio: ["ignore", "ignore", "pipe"] });
  if (child.exitCode !== 0)
    throw new Error(`${side}: exit code ${child.exitCode}: ${String(child.stderr).slice(-500)}`);
  const processor = Number(child.resourceUsage.cpuTime.total) / 1e6;
  return { clock: (performance.now() - startedMs) / 1000, processor };
}

function commandOf(side: "hearth" | "llama.cpp", paths: readonly string[]): string[] {
  const program = flags["peer-program"];
  if (side === "llama.cpp" && program) return [program, ...paths, flags.threads];
  const script =
    side === "hearth" ? [join(import.meta.dir, "../src/main.ts"), "quantize"] : [import.meta.path, "--peer"];
  return [process.execPath, ...script, ...paths, "--threads", flags.threads];
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN;
}

/** `llama_model_quantize` of llama.h with its default parameters except threads and file type. */
function quantizeByLlama([from, to, type]: [string, string, string]): void {
  const { symbols } = dlopen(findLibrary(), {
    llama_backend_init: { args: [], returns: "void" },
    llama_model_quantize_default_params: { args: ["ptr"], returns: "ptr" }, // returned through a hidden first argument
    llama_model_quantize: { args: ["cstring", "cstring", "ptr"], returns: "u32" },
  });
  const params = new Int32Array(64);
  symbols.llama_backend_init();
  symbols.llama_model_quantize_default_params(ptr(params));
  params[0] = threads;
  params[1] = fileTypeId(parseFileType(type));
  const text = (path: string): Buffer => Buffer.from(`${path}\0`);
  process.exit(symbols.llama_model_quantize(text(from), text(to), ptr(params)));
}

/** The library in node-llama-cpp's prebuilt package for this machine. */
function findLibrary(): string {
  const name = `${process.platform === "darwin" ? "mac" : process.platform}-${process.arch}`;
  const folder = join(import.meta.dir, "node_modules/@node-llama-cpp", name, "bins", name);
  const found = existsSync(folder)
    ? readdirSync(folder).find((file) => /^libllama\.v?[\d.]*(so|dylib)$/.test(file))
    : "";
  if (!found) throw new Error(`${folder}: expected llama.cpp's library; bun install --cwd bench`);
  return join(folder, found);
}
