/**
 * Records llama.cpp's embeddings of the tiny encoders of test/engine/architectures/encoders.ts and the models of
 * test/engine/architectures/embedders.ts, for test/engine/architectures/embeddings/. Run it after changing a model
 * there: `bun install --cwd bench && bun bench/record-embeddings.ts [NAME …]`.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getLlama, LlamaLogLevel, type Token } from "node-llama-cpp";
import { normalized } from "../src/engine/batching/pooling.ts";
import { openGguf } from "../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../src/engine/formats/files/write.ts";
import { loadTokenizer } from "../src/engine/text/tokenizer/load.ts";
import { readEmbedders } from "../test/engine/architectures/embedders.ts";
import { makeOutline, OUTLINE_TOKENS } from "../test/engine/architectures/outlines.ts";
import { encoders, makeEncoder, RECORDED_TEXTS, type EncoderSpec } from "../test/engine/architectures/encoders.ts";

const llama = await getLlama({ gpu: false, build: "never", logLevel: LlamaLogLevel.error });
const folder = await mkdtemp(join(tmpdir(), "hearth-embeddings-"));
const wanted = process.argv.slice(2);
try {
  for (const [name, spec] of Object.entries<EncoderSpec>(encoders)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    const path = join(folder, `${name}.gguf`);
    await writeGguf(path, makeEncoder(spec));
    const vectors = await embeddingsOf(path);
    await Bun.write(join(import.meta.dir, "../test/engine/architectures/embeddings", `${name}.f32`), new Blob(vectors));
    console.log(`${name}: ${vectors.length} texts`);
  }
  for (const [name, outline] of readEmbedders()) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    const path = join(folder, `${name}.gguf`);
    await writeGguf(path, makeOutline(name, outline));
    const vectors = await vectorsOf(path, [OUTLINE_TOKENS]);
    await Bun.write(join(import.meta.dir, "../test/engine/architectures/embeddings", `${name}.f32`), new Blob(vectors));
    console.log(`${name}: one text`);
  }
} finally {
  await rm(folder, { recursive: true });
  await llama.dispose();
}

/** Vectors of unit length of the recorded texts. The ids are ours, so that tokenizers do not matter. */
async function embeddingsOf(path: string): Promise<Float32Array<ArrayBuffer>[]> {
  const gguf = openGguf(path);
  const tokenizer = loadTokenizer(gguf.metadata, path);
  const texts = RECORDED_TEXTS.map((text) => tokenizer.encode(text, { addSpecial: true, parseSpecial: true }));
  gguf.close();
  return vectorsOf(path, texts);
}

async function vectorsOf(path: string, texts: readonly Int32Array[]): Promise<Float32Array<ArrayBuffer>[]> {
  const model = await llama.loadModel({ modelPath: path, useMmap: true, gpuLayers: 0 });
  const context = await model.createEmbeddingContext({ contextSize: 64, batchSize: 64 });
  const vectors: Float32Array<ArrayBuffer>[] = [];
  for (const ids of texts) {
    const { vector } = await context.getEmbeddingFor(Array.from(ids) as Token[]); // branded numbers
    vectors.push(Float32Array.from(normalized(Float64Array.from(vector))));
  }
  await context.dispose();
  await model.dispose();
  return vectors;
}
