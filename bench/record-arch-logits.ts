/**
 * Records what llama.cpp answers to the tiny models of test/arch/models.ts, for test/arch/logits/. Run it after
 * changing a model there: `bun install --cwd bench && bun bench/record-arch-logits.ts [NAME …]`. Float32 cache, no
 * flash attention.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getLlama, LlamaLogLevel, type Token } from "node-llama-cpp";
import { writeGguf } from "../src/gguf/write.ts";
import { CTX_LEN, makeModel, RECORDED, specs, TOKENS, VOCAB } from "../test/arch/models.ts";

const llama = await getLlama({ gpu: false, build: "never", logLevel: LlamaLogLevel.error });
const folder = await mkdtemp(join(tmpdir(), "hearth-arch-"));
const names = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(specs);
try {
  for (const name of names) {
    const modelPath = join(folder, `${name}.gguf`);
    await writeGguf(modelPath, makeModel(name));
    const logits = await logitsOf(modelPath);
    await Bun.write(join(import.meta.dir, "../test/arch/logits", `${name}.f32`), logits);
    console.log(`${name}: ${logits.length / VOCAB} positions`);
  }
} finally {
  await rm(folder, { recursive: true });
  await llama.dispose();
}

/** Logits after each of the last RECORDED tokens, (RECORDED, VOCAB). */
async function logitsOf(modelPath: string): Promise<Float32Array> {
  const model = await llama.loadModel({ modelPath, useMmap: true, gpuLayers: 0 });
  const context = await model.createContext({
    contextSize: CTX_LEN,
    sequences: 1,
    flashAttention: false,
    experimentalKvCacheKeyType: "F32",
    experimentalKvCacheValueType: "F32",
  });
  const wanted = TOKENS.length - RECORDED;
  const input = Array.from(TOKENS, (id, i): Token | [Token, { generateNext: { logits: true } }] => {
    const token = id as Token; // a token is a number with a brand
    return i < wanted ? token : [token, { generateNext: { logits: true } }];
  });
  const outputs = await context.getSequence().controlledEvaluate(input);
  const logits = new Float32Array(RECORDED * VOCAB);
  for (const [row, output] of outputs.slice(wanted).entries()) {
    for (const [token, logit] of output!.next.logits!) logits[row * VOCAB + token] = logit;
  }
  await context.dispose();
  await model.dispose();
  return logits;
}
