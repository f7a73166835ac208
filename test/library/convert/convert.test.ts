import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { convertModel } from "../../../src/library/convert/convert.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../src/engine/formats/files/write.ts";
import { fileOptions } from "../../../src/engine/text/sampling/file-options.ts";
import { CTX_LEN, TOKENS } from "../../engine/architectures/models.ts";
import { DTYPES, exactModel, plainFiles, writeFolder, type Dtype } from "./hugging-face.ts";

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-convert-"))));
afterAll(() => rm(folder, { recursive: true }));

/** Logits of every token, and the bytes of every tensor. */
async function openModel(path: string) {
  const gguf = openGguf(path);
  try {
    const options = { ctxLen: CTX_LEN, slots: 1, precise: true, threads: 1, cacheDir: undefined };
    const session = await cpuBackend.load(loadProgram(gguf), options);
    const logits = await session.run([{ slot: 0, start: 0, tokens: TOKENS, logits: "all" }]);
    const tensors = [...gguf.tensors.values()].map(({ name, quant, shape }) => {
      const bytes = Bun.hash(gguf.read(name)).toString(16);
      return `${name} ${quant.name} (${shape.join(", ")}) ${bytes}`;
    });
    return { logits: logits.slice(), tensors: tensors.sort() };
  } finally {
    gguf.close();
  }
}

const MODELS = [
  "llama",
  "llama-linear",
  "llama-yarn",
  "llama-biases",
  "qwen2",
  "qwen3",
  "gemma",
  "gemma2",
  "gemma3",
  "phi3",
  "phi3-long",
] as const;

describe.each(MODELS)("%s:", (name) => {
  test.each(["F16", "BF16", "F32"] as const)(
    "a folder in %s gives the logits and the tensors of its GGUF",
    async (dtype) => {
      const stored: Dtype = dtype === "BF16" ? "BF16" : "F16"; // the type of converted matrices
      const model = exactModel(name, DTYPES[stored]);
      const wanted = join(folder, `${name}-${dtype}.gguf`);
      await writeGguf(wanted, model);
      const to = join(folder, `${name}-${dtype}-converted.gguf`);
      const source = await writeFolder(join(folder, `${name}-${dtype}`), plainFiles(model, dtype));
      expect(await convertModel({ folder: source, to })).toEqual({ notes: [] });
      const [converted, original] = [await openModel(to), await openModel(wanted)];
      expect(converted.tensors).toEqual(original.tensors);
      expect(converted.logits).toEqual(original.logits);
      expect(original.logits.every(Number.isFinite)).toBe(true);
    },
  );
});

test("recommended sampling settings and bidirectional attention are in the file", async () => {
  const to = join(folder, "recommended.gguf");
  const files = plainFiles(exactModel("qwen3", DTYPES.F16), "F16");
  const config = { ...(files["config.json"] as object), is_causal: false };
  const generation = { temperature: 0.6, top_k: 20, top_p: null, min_p: "0.1", repetition_penalty: 1.05 };
  const all = { ...files, "config.json": config, "generation_config.json": generation };
  await convertModel({ folder: await writeFolder(join(folder, "recommended"), all), to });
  const gguf = openGguf(to);
  const metadata = Object.fromEntries([...gguf.metadata].filter(([key]) => /sampling|causal/.test(key)));
  const { logits } = loadProgram(gguf);
  gguf.close();
  expect(fileOptions(gguf.metadata)).toEqual({ temperature: 0.6, top_k: 20, repeat_penalty: 1.05 });
  expect(Object.keys(metadata).sort()).toEqual([
    "general.sampling.penalty_repeat",
    "general.sampling.temp",
    "general.sampling.top_k",
    "qwen3.attention.causal",
  ]);
  expect(logits).toBeUndefined();
});

test("a decoder with a pooling of sentence-transformers becomes an embedding model", async () => {
  const to = join(folder, "embedder.gguf");
  const source = await writeFolder(join(folder, "embedder"), {
    ...plainFiles(exactModel("qwen3", DTYPES.F16), "F16"),
    "1_Pooling/config.json": { word_embedding_dimension: 64, pooling_mode_lasttoken: true, include_prompt: true },
  });
  await convertModel({ folder: source, to });
  const gguf = openGguf(to);
  expect(gguf.metadata.get("qwen3.pooling_type")).toBe(3);
  gguf.close();
});

test.each([
  ["Phi-4-mini-instruct", "Phi-4-mini-instruct"],
  ["phi3.5-mini", "phi3.5-mini"],
  ["mine", "Phi-3"],
])("a Phi model in the folder %s is named %s", async (label, name) => {
  const to = join(folder, `${label}.gguf`);
  const files = plainFiles(exactModel("phi3", DTYPES.F16), "F16");
  await convertModel({ folder: { ...(await writeFolder(join(folder, label), files)), label: `/models/${label}` }, to });
  const gguf = openGguf(to);
  expect(gguf.metadata.get("general.name")).toBe(name);
  gguf.close();
});
