/**
 * `hearth logits`, `tokenize`, `generate`, `quantize` and `devices`: commands without a server, to compare with other
 * implementations. Input is ids, output ids or raw float32; no tokens are added.
 */
import { renameSync, writeFileSync } from "node:fs";
import { loadProgram } from "../../engine/architectures/index.ts";
import { chooseBackend, gpuTools, probeDevice } from "../../engine/backends/index.ts";
import { addStates, normalized, poolingOf, type Program, type Session } from "../../engine/index.ts";
import { loadOptionsFor } from "../../engine/portable.ts";
import { AppError, formatTuning, type KernelChoice, messageOf } from "../../base/index.ts";
import { joined, plain, sequences } from "../terminal/drawing.ts";
import { formatBytes, formatTable } from "../terminal/format.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { type Gguf, openGguf, type QuantName, repairGguf } from "../../engine/formats/index.ts";
import { quantizeFile, type QuantizeOptions } from "../../library/making.ts";
import { loadTokenizer } from "../../engine/text/index.ts";

/** Longest list of ids on the command line: far above any model's context. */
const TOKENS_MAX = 1 << 20;

/** Matrix types that `devices --tune` measures. */
const TUNED_QUANTS = ["q4_0", "q4_K", "q6_K", "q8_0", "f16"] as const satisfies readonly QuantName[];
const TUNED_DIMS = [1024, 4096];

export interface ModelRun {
  readonly model: string;
  readonly adapter?: readonly string[];
  readonly tokens: string;
  readonly backend: string;
  readonly precise: boolean;
  readonly threads: number;
  /** Layers on the GPU; undefined: as many as fit. */
  readonly numGpu?: number | undefined;
  /** The GPU's name, or a part of it; undefined: the best. */
  readonly gpu?: string | undefined;
  /** The setting of the same name; undefined: the GPU's memory. */
  readonly gpuMemory?: number | undefined;
  /** Level of the CPU kernels; undefined: the machine's best. */
  readonly simdLevel?: string | undefined;
  /** The setting `gpuKernels`. */
  readonly kernels?: KernelChoice | undefined;
}

/**
 * Writes the logits of every position, (tokens, vocabSize) float32 little-endian row-major; for an encoder the pooled
 * vector of unit length, (dim).
 */
export async function writeLogits(options: ModelRun & { out: string }): Promise<void> {
  await withSession(options, 0, async ({ session, gguf, program }, tokens) => {
    const values = program.logits
      ? await session.run([{ slot: 0, start: 0, tokens, logits: "all" }])
      : await pooledVector(session, tokens, { gguf, program });
    const temporary = `${options.out}.partial`;
    writeFileSync(temporary, new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
    renameSync(temporary, options.out);
  });
}

async function pooledVector(
  session: Session,
  tokens: Int32Array,
  { gguf, program }: { gguf: Gguf; program: Program },
): Promise<Float32Array> {
  const pooling = poolingOf(gguf, { arch: program.shape.arch, encoder: true });
  const sum = new Float64Array(program.states.dim);
  const states = pooling === "mean" ? "all" : pooling;
  addStates(sum, await session.states([{ slot: 0, start: 0, tokens, states }]));
  return normalized(sum);
}

/** Continues the ids with `count` greedy ones. */
export async function greedyTokens(options: ModelRun & { count: number }): Promise<number[]> {
  return withSession(options, options.count, async ({ session, program }, prompt) => {
    if (!program.logits) {
      const instead = "'hearth logits' writes its vector, and 'hearth run MODEL TEXT' prints that of a text";
      throw new AppError("unsupported", `${options.model}: an encoder generates nothing: ${instead}`);
    }
    const generated: number[] = [];
    let tokens = prompt;
    let start = 0;
    while (generated.length < options.count) {
      const logits = await session.run([{ slot: 0, start, tokens, logits: "last" }]);
      start += tokens.length;
      const best = argmax(logits);
      generated.push(best);
      tokens = Int32Array.of(best);
    }
    return generated;
  });
}

/** Ids of a text from the model's tokenizer, without BOS or EOS. */
export function tokenIds(options: { model: string; text: string; parseSpecial: boolean }): Int32Array {
  const gguf = repairGguf(openGguf(options.model));
  try {
    const tokenizer = loadTokenizer(gguf.metadata, options.model);
    return tokenizer.encode(options.text, { addSpecial: false, parseSpecial: options.parseSpecial });
  } finally {
    gguf.close();
  }
}

/** Lists the devices of the GPU backend, as a table with their features, or as JSON. */
export async function showDevices(terminal: Terminal, { json }: { json: boolean }): Promise<void> {
  const { dawn, listAdapters } = await gpuTools();
  let why = "no GPU was found";
  const adapters = await listAdapters(dawn()).catch((error: unknown) => {
    why = messageOf(error); // a machine without GPU is not a failure
    return [];
  });
  if (json) {
    if (adapters.length === 0) terminal.note(why);
    return terminal.write(`${JSON.stringify(adapters, null, 2)}\n`);
  }
  if (adapters.length === 0) return terminal.write(`Models run on the CPU here: ${why}.\n`);
  const rows = adapters.map((each, index) => [
    each.name,
    each.refusal ?? (each.software ? "software" : index === 0 ? "GPU, default" : "GPU"),
    formatBytes(each.limits.maxStorageBufferBindingSize),
    formatBytes(each.limits.maxBufferSize),
  ]);
  terminal.write(formatTable(["NAME", "KIND", "TENSOR PIECE", "LARGEST BUFFER"], rows));
  for (const { name, features } of adapters) terminal.write(`${name}: ${features.join(", ")}\n`);
}

/** Prints the device probe of a backend as JSON. Throws `unsupported`. */
export async function showProbe(
  terminal: Terminal,
  { backend, gpu }: { backend: string; gpu: string | undefined },
): Promise<void> {
  terminal.write(`${JSON.stringify(await probeDevice(backend, gpu))}\n`);
}

/**
 * Prints the fastest kernels of the default GPU for common matrices: cached in `cacheDir`, or searched now. Throws
 * `unsupported` for a software adapter.
 */
export async function showKernels(
  terminal: Terminal,
  { json, gpu, cacheDir }: { json: boolean; gpu: string | undefined; cacheDir: string },
): Promise<void> {
  const { dawn, openDevice, tuningFile, tuningsOf } = await gpuTools();
  await dawn().open({ adapter: gpu });
  const device = await openDevice(dawn());
  const { name, software } = device.facts;
  if (software) throw new AppError("unsupported", `'${name}' is a software adapter: it runs the plain kernels`);
  const found: { quant: string; rowsOf: number; auto: string; exact: string; wrong: readonly string[] }[] = [];
  for (const quant of TUNED_QUANTS)
    for (const dim of TUNED_DIMS) {
      const { exact, fast, wrong = [] } = await tuningsOf(device, { quant, dim }, { store: tuningFile(cacheDir) });
      found.push({ quant, rowsOf: dim, auto: formatTuning(fast), exact: formatTuning(exact), wrong });
    }
  if (json) return terminal.write(`${JSON.stringify({ device: name, kernels: found }, null, 2)}\n`);
  const rows = found.map(({ quant, rowsOf, auto, exact }) => [quant, String(rowsOf), auto, exact]);
  terminal.write(`${name}\n${formatTable(["TYPE", "ROWS OF", "AUTO", "EXACT"], rows)}`);
  for (const kernels of new Set(found.flatMap(({ wrong }) => wrong)))
    terminal.write(`${kernels} is not used: its results are wrong on this GPU\n`);
}

/** Quantizes a file, with progress at a terminal. */
export async function quantize(terminal: Terminal, options: QuantizeOptions): Promise<void> {
  const { showsProgress } = terminal;
  const onProgress = ({ completed, total }: { completed: number; total: number }): void => {
    const percent = plain(`${Math.floor((100 * completed) / Math.max(1, total))} %`);
    terminal.drawBeside(joined([sequences.lineStart, percent]));
  };
  const { type, tensorTypes } = await quantizeFile({ ...options, ...(showsProgress ? { onProgress } : {}) });
  if (showsProgress) terminal.drawBeside(sequences.eraseLine);
  terminal.write(`${options.to}: ${type}, ${tensorTypes.size} tensors\n`);
}

/** Parses `1,2,3`; ids must lie in the vocabulary. */
function parseTokens(text: string, vocabSize: number): Int32Array {
  const parts = text.split(",");
  if (parts.length > TOKENS_MAX)
    throw new AppError("too_large", `--tokens: expected at most ${TOKENS_MAX} ids, got ${parts.length}`);
  return Int32Array.from(parts, (part) => {
    const id = /^\s*\d+\s*$/.test(part) ? Number(part) : NaN;
    if (id < vocabSize) return id;
    throw new AppError("bad_request", `--tokens: expected ids below ${vocabSize} separated by commas, got '${part}'`);
  });
}

async function withSession<T>(
  options: ModelRun,
  more: number,
  use: (model: { session: Session; gguf: Gguf; program: Program }, tokens: Int32Array) => Promise<T>,
): Promise<T> {
  const gguf = repairGguf(openGguf(options.model));
  const adapters: Gguf[] = [];
  try {
    for (const path of options.adapter ?? []) adapters.push(openGguf(path));
    const program = loadProgram(gguf, adapters);
    const tokens = parseTokens(options.tokens, program.shape.vocabSize);
    const { numGpu: layers, gpuMemory: memory, gpu: adapter } = options;
    const backend = await chooseBackend(options.backend, { layers, memory, adapter });
    const session = await backend.load(
      program,
      loadOptionsFor(program, {
        ctxLen: tokens.length + more,
        slots: 1,
        precise: options.precise,
        threads: options.threads,
        cacheDir: undefined,
        gpuKernels: options.kernels,
        simdLevel: options.simdLevel,
      }),
    );
    try {
      return await use({ session, gguf, program }, tokens);
    } finally {
      session.close();
    }
  } finally {
    for (const file of [gguf, ...adapters]) file.close();
  }
}

function argmax(logits: Float32Array): number {
  let best = 0;
  for (let i = 1; i < logits.length; i++) if (logits[i]! > logits[best]!) best = i;
  return best;
}
