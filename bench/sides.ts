/**
 * The two sides of the comparison, each in a separate child process: `bun bench/sides.ts hearth|llama FILE THREADS`
 * loads the file, measures, and prints one line of JSON. Both read the same tokens and pick the likeliest next one.
 */
import { readFileSync } from "node:fs";
import type { Token } from "node-llama-cpp";

/** The measurements of one process. Rates in tokens/s, times in milliseconds, sizes in bytes. */
export interface Measurement {
  readonly loadMs: number;
  readonly prefill: number;
  readonly decode: number;
  /** Four sequences decoded at once, tokens/s of all together; NaN: not measured. */
  readonly decodeFour: number;
  readonly peakBytes: number;
  readonly steadyBytes: number;
}

const PROMPT_TOKENS = 512;
const DECODED_TOKENS = 64;
const CTX_LEN = 2048;
/** Token ids that are ordinary text in every vocabulary of a thousand or more. */
const prompt = Int32Array.from({ length: PROMPT_TOKENS }, (_, i) => 300 + ((i * 7919) % 700));

type Side = (options: { file: string; threads: number }) => Promise<Omit<Measurement, "peakBytes" | "steadyBytes">>;

const hearth: Side = async ({ file, threads }) => {
  const { loadProgram } = await import("../src/engine/architectures/index.ts");
  const { openGguf } = await import("../src/engine/formats/files/gguf.ts");
  const { simdBackend } = await import("../src/engine/backends/host/simd.ts");
  const startedMs = performance.now();
  const program = loadProgram(openGguf(file));
  const session = await simdBackend.load(program, {
    ctxLen: CTX_LEN,
    slots: 4,
    precise: false,
    threads,
    cacheDir: undefined,
  });
  const loadMs = performance.now() - startedMs;
  const feed = (slot: number, start: number, tokens: Int32Array) => ({ slot, start, tokens, logits: "last" }) as const;
  await session.run([feed(0, 0, prompt.subarray(0, 64))]); // warm-up
  const prefillMs = await timeOf(() => session.run([feed(0, 0, prompt)]));
  let token = 300;
  const decodeMs = await timeOf(async () => {
    for (let i = 0; i < DECODED_TOKENS; i++) {
      token = argmax(await session.run([feed(0, PROMPT_TOKENS + i, Int32Array.of(token))]));
    }
  });
  for (const slot of [1, 2, 3]) session.copy({ from: 0, to: slot, length: PROMPT_TOKENS });
  const fourMs = await timeOf(async () => {
    for (let i = 0; i < DECODED_TOKENS / 4; i++) {
      const logits = await session.run([0, 1, 2, 3].map((slot) => feed(slot, PROMPT_TOKENS + i, Int32Array.of(token))));
      token = argmax(logits.subarray(0, program.shape.vocabSize));
    }
  });
  return {
    loadMs,
    prefill: rate(PROMPT_TOKENS, prefillMs),
    decode: rate(DECODED_TOKENS, decodeMs),
    decodeFour: rate(DECODED_TOKENS, fourMs),
  };
};

const llama: Side = async ({ file, threads }) => {
  const { getLlama, LlamaLogLevel } = await import("node-llama-cpp");
  const startedMs = performance.now();
  const binding = await getLlama({ gpu: false, build: "never", maxThreads: threads, logLevel: LlamaLogLevel.error });
  const model = await binding.loadModel({ modelPath: file });
  const context = await model.createContext({ contextSize: CTX_LEN, batchSize: PROMPT_TOKENS, threads });
  const sequence = context.getSequence();
  const loadMs = performance.now() - startedMs;
  const tokens = Array.from(prompt) as Token[]; // a branded number
  await sequence.evaluateWithoutGeneratingNewTokens(tokens.slice(0, 64));
  await sequence.clearHistory();
  const prefillMs = await timeOf(() => sequence.evaluateWithoutGeneratingNewTokens(tokens));
  let decoded = 0;
  const decodeMs = await timeOf(async () => {
    for await (const _ of sequence.evaluate(tokens.slice(0, 1), { temperature: 0, yieldEogToken: true })) {
      if (++decoded === DECODED_TOKENS) return;
    }
  });
  return { loadMs, prefill: rate(PROMPT_TOKENS, prefillMs), decode: rate(decoded, decodeMs), decodeFour: NaN };
};

export const sides = { hearth, llama } as const satisfies Record<string, Side>;
export type SideName = keyof typeof sides;

const rate = (tokens: number, ms: number): number => (1000 * tokens) / ms;

async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

export function argmax(logits: Float32Array): number {
  let best = 0;
  for (let i = 1; i < logits.length; i++) if (logits[i]! > logits[best]!) best = i;
  return best;
}

/** A field of /proc/self/status in bytes; on other systems the runtime's own figure. */
function memory(field: "VmHWM" | "VmRSS"): number {
  try {
    const kilobytes = new RegExp(`${field}:\\s+(\\d+) kB`).exec(readFileSync("/proc/self/status", "utf8"))?.[1];
    if (kilobytes) return Number(kilobytes) * 1024;
  } catch {
    return process.memoryUsage.rss();
  }
  return process.memoryUsage.rss();
}

if (import.meta.main) {
  const [name, file, threads] = process.argv.slice(2);
  if (!name || !Object.hasOwn(sides, name) || !file) throw new Error("usage: sides.ts hearth|llama FILE THREADS");
  const result = await sides[name as SideName]({ file, threads: Number(threads) }); // looked up above
  const measured: Measurement = { ...result, peakBytes: memory("VmHWM"), steadyBytes: memory("VmRSS") };
  console.log(JSON.stringify(measured));
  process.exit(0);
}
