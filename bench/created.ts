/**
 * A model made by Hearth, read by llama.cpp: the embedded model as half floats goes to a server of its own with
 * `POST /api/create` and `quantize`, and what comes out is compared token by token (greedy.ts): as it is, and with its
 * weights as float32. Says also how fast the server answers `GET /api/version` before and while it quantizes.
 *
 *   bun bench/created.ts [FILE.gguf] [--type q4_K_M] [--tokens 32]
 *
 * With --tokens 0 nothing is compared.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { openGguf } from "../src/engine/formats/files/gguf.ts";
import { writeGguf, type WriteTensor } from "../src/engine/formats/files/write.ts";
import { quants } from "../src/engine/formats/quant/index.ts";
import { digestOfFile } from "../src/library/digest.ts";
import { fileTypeId } from "../src/library/quantize-mix.ts";
import { writableMetadata } from "../src/library/quantize-metadata.ts";
import { ndjson, startHearth, type Hearth } from "../test/e2e/hearth.ts";

const EMBEDDED = join(import.meta.dir, "../models/hearth/hearth.gguf");
const PROBE_MS = 5;
const BASELINE_MS = 2000;

const { values: flags, positionals } = parseArgs({
  options: { type: { type: "string", default: "q4_K_M" }, tokens: { type: "string", default: "32" } },
  allowPositionals: true,
});

const home = mkdtempSync(join(tmpdir(), "hearth-created-"));
const file = positionals[0] === undefined ? await expanded(EMBEDDED, "f16") : resolve(positionals[0]);
const hearth = await startHearth({ home });
try {
  await upload(hearth, file);
  const made = await create(hearth, await digestOfFile(file));
  if (Number(flags.tokens) > 0) {
    console.log("\nboth on the model that was made; llama.cpp rounds activations to 8 bits");
    compare(made);
    console.log("\nboth on the same weights as float32, where llama.cpp rounds nothing");
    compare(await expanded(made, "f32"));
  }
} finally {
  await hearth.stop();
  rmSync(home, { recursive: true, force: true });
}

/** A copy of a model with every quantized tensor as floats, and its other tensors as they are. */
async function expanded(from: string, float: "f16" | "f32"): Promise<string> {
  const path = join(home, `${float}.gguf`);
  const gguf = openGguf(from);
  const end = Math.min(...[...gguf.tensors.values()].map(({ offset }) => offset));
  const header = await Bun.file(from).slice(0, end).bytes();
  const tensors = [...gguf.tensors.values()].map(({ name, shape, quant }): WriteTensor => {
    const bytes = gguf.read(name);
    if (quant.blockLen === 1) return { name, shape, quant, data: bytes };
    const weights = new Float32Array((bytes.length / quant.blockBytes) * quant.blockLen);
    quant.dequantize(bytes, weights);
    const data = new Uint8Array(weights.length * quants[float].blockBytes);
    quants[float].quantize(weights, data);
    return { name, shape, quant: quants[float], data };
  });
  const metadata = {
    ...writableMetadata(header, gguf.metadata, from),
    "general.file_type": { u32: fileTypeId(float === "f16" ? "F16" : "F32") },
  };
  await writeGguf(path, { metadata, tensors });
  gguf.close();
  return path;
}

async function upload({ url }: Hearth, path: string): Promise<void> {
  const response = await fetch(`${url}/api/blobs/${await digestOfFile(path)}`, {
    method: "POST",
    body: Bun.file(path),
  });
  if (!response.ok) throw new Error(`upload: ${response.status} ${await response.text()}`);
}

/** The path of the weights that were made. */
async function create(server: Hearth, digest: string): Promise<string> {
  const body = { model: "made", files: { "model.gguf": digest }, quantize: flags.type };
  console.log(`GET /api/version before: ${summary(await probe(server, AbortSignal.timeout(BASELINE_MS)))}`);
  const startedMs = performance.now();
  const done = new AbortController();
  const probed = probe(server, done.signal);
  let last = "";
  for await (const step of ndjson(await server.post("/api/create", body))) {
    if (step["error"]) throw new Error(`create: ${step["error"]}`);
    if (step["status"] !== last) console.log((last = step["status"]));
  }
  done.abort();
  const seconds = (performance.now() - startedMs) / 1000;
  console.log(`created in ${seconds.toFixed(1)} s`);
  console.log(`GET /api/version meanwhile: ${summary(await probed)}`);
  const shown = (await (await server.post("/api/show", { model: "made" })).json()) as Record<string, any>;
  console.log(JSON.stringify(shown["details"]));
  return /^FROM (.*)$/m.exec(shown["modelfile"])![1]!; // every Modelfile has one
}

async function probe({ url }: Hearth, signal: AbortSignal): Promise<number[]> {
  const times: number[] = [];
  while (!signal.aborted) {
    const startedMs = performance.now();
    await (await fetch(`${url}/api/version`)).text();
    times.push(performance.now() - startedMs);
    await Bun.sleep(PROBE_MS);
  }
  return times;
}

function summary(times: readonly number[]): string {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (q: number): string => (sorted[Math.floor(q * (sorted.length - 1))] ?? NaN).toFixed(1);
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, n ${sorted.length}`;
}

function compare(path: string): void {
  const command = [process.execPath, join(import.meta.dir, "greedy.ts"), path, "--tokens", flags.tokens];
  const { exitCode } = Bun.spawnSync(command, { stdio: ["ignore", "inherit", "inherit"] });
  if (exitCode !== 0) throw new Error(`greedy.ts ended with ${exitCode}`);
}
