/**
 * Records llama.cpp's logits of the tiny models of test/engine/architectures/models.ts, families.ts and outlines.ts,
 * for test/engine/architectures/logits/, and with the adapters of test/engine/architectures/adapters.ts. Run it after
 * changing a model there: `bun install --cwd bench && bun bench/record-arch-logits.ts [NAME …]`; a name may be
 * `MODEL+adapter`. Float32 cache, no flash attention.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getLlama, LlamaLogLevel, type LlamaContextOptions, type Token } from "node-llama-cpp";
import { writeGguf } from "../src/engine/formats/files/write.ts";
import { makeAdapter, recordedAdapters } from "../test/engine/architectures/adapters.ts";
import { CTX_LEN, makeModel, modelNames, RECORDED, TOKENS } from "../test/engine/architectures/models.ts";
import { withoutCrossLayers } from "../test/engine/architectures/cross-layers.ts";
import { makeOutline, OUTLINE_TOKENS, readOutlines } from "../test/engine/architectures/outlines.ts";

const llama = await getLlama({ gpu: false, build: "never", logLevel: LlamaLogLevel.error });
const folder = await mkdtemp(join(tmpdir(), "hearth-arch-"));
const adapted = Object.keys(recordedAdapters).map((name) => `${name}+adapter`);
const outlines = readOutlines();
const names = process.argv.length > 2 ? process.argv.slice(2) : [...modelNames, ...outlines.keys(), ...adapted];
try {
  for (const name of names) {
    const [base = name, adapter] = name.split("+");
    const outline = outlines.get(base);
    const made = outline ? makeOutline(base, outline) : makeModel(base);
    const model = base === "mllama" ? withoutCrossLayers(made) : made; // llama.cpp does not support such layers
    const tokens = outline ? OUTLINE_TOKENS : TOKENS;
    const modelPath = join(folder, `${base}.gguf`);
    await writeGguf(modelPath, model);
    const adapterPath = join(folder, `${name}.adapter.gguf`);
    if (adapter) await writeGguf(adapterPath, makeAdapter(model, recordedAdapters[base]!));
    const more = adapter ? { lora: { adapters: [{ filePath: adapterPath }] } } : {};
    const logits = await logitsOf(modelPath, tokens, more);
    await Bun.write(join(import.meta.dir, "../test/engine/architectures/logits", `${name}.f32`), logits);
    console.log(`${name}: ${logits.length} logits`);
    await rm(modelPath);
  }
} finally {
  await rm(folder, { recursive: true });
  await llama.dispose();
}

/** Logits after each of the last RECORDED tokens, one row for each. */
async function logitsOf(
  modelPath: string,
  tokens: Int32Array,
  more: Pick<LlamaContextOptions, "lora">,
): Promise<Float32Array> {
  const model = await llama.loadModel({ modelPath, useMmap: true, gpuLayers: 0 });
  const context = await model.createContext({
    contextSize: CTX_LEN,
    sequences: 1,
    flashAttention: false,
    experimentalKvCacheKeyType: "F32",
    experimentalKvCacheValueType: "F32",
    ...more,
  });
  // requests all rows: for some rows only, llama.cpp returns wrong logits for an architecture or two
  const input = Array.from(tokens, (id): [Token, { generateNext: { logits: true } }] => {
    return [id as Token, { generateNext: { logits: true } }]; // a branded number
  });
  const outputs = await context.getSequence().controlledEvaluate(input);
  const rows = outputs.slice(-RECORDED).map((output) => output!.next.logits!);
  const logits = new Float32Array(rows.reduce((sum, { size }) => sum + size, 0));
  for (const [row, { size }] of rows.entries()) {
    for (const [token, logit] of rows[row]!) logits[row * size + token] = logit;
  }
  await context.dispose();
  await model.dispose();
  return logits;
}
