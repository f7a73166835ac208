/**
 * Records what llama.cpp answers to the tiny models of test/arch/models.ts and families.ts, for test/arch/logits/, and
 * to those with the adapters of test/arch/adapters.ts. Run it after changing one there: `bun install --cwd bench && bun
 * bench/record-arch-logits.ts [NAME …]`, where a name may be `MODEL+adapter`. Float32 cache, no flash attention.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getLlama, LlamaLogLevel, type LlamaContextOptions, type Token } from "node-llama-cpp";
import { writeGguf } from "../src/files/write.ts";
import { makeAdapter, recordedAdapters } from "../test/arch/adapters.ts";
import { CTX_LEN, makeModel, modelNames, RECORDED, TOKENS, VOCAB } from "../test/arch/models.ts";

const llama = await getLlama({ gpu: false, build: "never", logLevel: LlamaLogLevel.error });
const folder = await mkdtemp(join(tmpdir(), "hearth-arch-"));
const adapted = Object.keys(recordedAdapters).map((name) => `${name}+adapter`);
const names = process.argv.length > 2 ? process.argv.slice(2) : [...modelNames, ...adapted];
try {
  for (const name of names) {
    const [base = name, adapter] = name.split("+");
    const model = makeModel(base);
    const modelPath = join(folder, `${base}.gguf`);
    await writeGguf(modelPath, model);
    const adapterPath = join(folder, `${name}.adapter.gguf`);
    if (adapter) await writeGguf(adapterPath, makeAdapter(model, recordedAdapters[base]!));
    const logits = await logitsOf(modelPath, adapter ? { lora: { adapters: [{ filePath: adapterPath }] } } : {});
    await Bun.write(join(import.meta.dir, "../test/arch/logits", `${name}.f32`), logits);
    console.log(`${name}: ${logits.length / VOCAB} positions`);
  }
} finally {
  await rm(folder, { recursive: true });
  await llama.dispose();
}

/** Logits after each of the last RECORDED tokens, (RECORDED, VOCAB). */
async function logitsOf(modelPath: string, more: Pick<LlamaContextOptions, "lora">): Promise<Float32Array> {
  const model = await llama.loadModel({ modelPath, useMmap: true, gpuLayers: 0 });
  const context = await model.createContext({
    contextSize: CTX_LEN,
    sequences: 1,
    flashAttention: false,
    experimentalKvCacheKeyType: "F32",
    experimentalKvCacheValueType: "F32",
    ...more,
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
