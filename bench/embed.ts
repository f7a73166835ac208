/**
 * Embedding through the real server: 256 short texts in one call against one call each, alternated, medians; what the
 * reply's JSON costs; and with --peer llama.cpp on the same file and texts. Random weights, shaped like BERT base
 * (12 layers of 768) and MiniLM (6 of 384).
 *
 *   bun bench/embed.ts [--shape base|small|nomic] [--quant f16] [--texts 256] [--words 6] [--rounds 3] [--peer]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { makeRng } from "../src/engine/text/rng.ts";
import { wordOf } from "../test/engine/architectures/encoders.ts";
import { startHearth, type Hearth } from "../test/e2e/hearth.ts";
import { ensureEncoder } from "./encoder-file.ts";
import { installFile } from "./install-file.ts";

const { values: flags } = parseArgs({
  options: {
    shape: { type: "string", default: "base" },
    quant: { type: "string", default: "f16" },
    texts: { type: "string", default: "256" },
    words: { type: "string", default: "6" },
    rounds: { type: "string", default: "3" },
    peer: { type: "boolean", default: false },
  },
});

const file = await ensureEncoder(flags.shape, flags.quant);
const rng = makeRng(7);
const texts = Array.from({ length: Number(flags.texts) }, () => sentence(Number(flags.words)));
const home = mkdtempSync(join(tmpdir(), "hearth-embed-"));
const model = await installFile({ root: join(home, ".hearth", "models"), file, name: "bench" });
const hearth = await startHearth({ home });
try {
  const first = await embed(hearth, texts.slice(0, 2));
  const loadMs = (first.load_duration ?? 0) / 1e6;
  const [together, alone, server]: number[][] = [[], [], []];
  let tokens = 0;
  for (let round = 0; round < Number(flags.rounds); round++) {
    together!.push(
      await msOf(async () => {
        const reply = await embed(hearth, texts);
        tokens = reply.prompt_eval_count ?? 0;
        server!.push(reply.total_duration / 1e6);
      }),
    );
    alone!.push(
      await msOf(async () => {
        for (const text of texts) await embed(hearth, [text]);
      }),
    );
  }
  const [one, many] = [median(alone!), median(together!)];
  console.log(`${flags.shape} ${flags.quant}: ${texts.length} texts, ${tokens} tokens, load ${loadMs.toFixed(0)} ms`);
  console.log(`one call each   ${one.toFixed(0)} ms   ${((1000 * tokens) / one).toFixed(0)} tokens/s`);
  console.log(`one call        ${many.toFixed(0)} ms   ${((1000 * tokens) / many).toFixed(0)} tokens/s`);
  console.log(`                of which outside of the model: ${(many - median(server!)).toFixed(0)} ms`);
  console.log(`ratio           ${(one / many).toFixed(2)}`);
  if (flags.peer) await peer();
} finally {
  await hearth.stop();
  rmSync(home, { recursive: true, force: true });
}

/** llama.cpp, text by text, as its binding does it. */
async function peer(): Promise<void> {
  const { getLlama, LlamaLogLevel } = await import("node-llama-cpp");
  const { embeddings } = await embed(hearth, texts);
  const llama = await getLlama({ gpu: false, build: "never", maxThreads: 2, logLevel: LlamaLogLevel.error });
  const loaded = await llama.loadModel({ modelPath: file });
  const context = await loaded.createEmbeddingContext({ contextSize: 512, batchSize: 512, threads: 2 });
  const vectors: (readonly number[])[] = [];
  const ms = await msOf(async () => {
    for (const text of texts) vectors.push((await context.getEmbeddingFor(text)).vector);
  });
  const worst = Math.min(...vectors.map((vector, i) => cosine(vector, embeddings[i]!)));
  console.log(`llama.cpp, each ${ms.toFixed(0)} ms; least cosine to ours ${worst.toFixed(6)}`);
  await llama.dispose();
}

function cosine(a: readonly number[], b: readonly number[]): number {
  const dot = (x: readonly number[], y: readonly number[]): number =>
    x.reduce((sum, value, i) => sum + value * y[i]!, 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

interface EmbedReply {
  readonly embeddings: number[][];
  readonly total_duration: number;
  readonly load_duration?: number;
  readonly prompt_eval_count?: number;
}

async function embed({ post }: Hearth, input: readonly string[]): Promise<EmbedReply> {
  const response = await post("/api/embed", { model, input });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  return (await response.json()) as EmbedReply; // our own server's
}

/** Words of the vocabulary, between half of and one and a half times as many as asked for. */
function sentence(words: number): string {
  const count = Math.max(1, Math.round(words * (0.5 + rng.float())));
  return Array.from({ length: count }, () => wordOf(Math.floor(rng.float() * 20_000))).join(" ");
}

async function msOf(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}
