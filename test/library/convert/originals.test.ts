/** Folders of over 50 families, converted: logits or states equal the original implementation's. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { convertible } from "../../../src/library/convert/archs/index.ts";
import { convertModel } from "../../../src/library/convert/convert.ts";
import { makeModel } from "../../engine/architectures/models.ts";
import { nmse } from "../../engine/backends/compare.ts";
import { byteTokenizer, encodeSafetensors, writeFolder } from "./hugging-face.ts";
import { readOriginals, ROWS, tensorsOf, type Original } from "./originals.ts";

const NMSE_MAX = 1e-6;
const originals = await readOriginals();
const folder = mkdtempSync(join(tmpdir(), "hearth-originals-"));
afterAll(() => rmSync(folder, { recursive: true }));
const tokenizer = byteTokenizer(makeModel("llama").metadata);

async function convert(name: string, original: Original): Promise<string> {
  const source = await writeFolder(join(folder, name), {
    "config.json": original.config,
    "tokenizer.json": tokenizer,
    "model.safetensors": encodeSafetensors(tensorsOf(original)),
  });
  const to = join(folder, `${name}.gguf`);
  await convertModel({ folder: source, to });
  return to;
}

test.each(Object.entries(originals))("%s", async (name, original) => {
  const gguf = openGguf(await convert(name, original));
  const options = { ctxLen: 256, slots: 1, precise: true, threads: 1, cacheDir: undefined };
  const program = loadProgram(gguf);
  const session = await cpuBackend.load(program, options);
  const tokens = Int32Array.from(original.ids);
  const rows = { slot: 0, start: 0, tokens };
  const answer = program.logits
    ? await session.run([{ ...rows, logits: "all" }])
    : await session.states([{ ...rows, states: "all" }]);
  const got = answer.slice();
  session.close();
  gguf.close();
  const expected = new Float32Array(Uint8Array.from(Buffer.from(original.last, "base64")).buffer);
  expect(got.length * ROWS).toBe(expected.length * tokens.length);
  expect(nmse(got.subarray(-expected.length), expected)).toBeLessThan(NMSE_MAX);
});

const WHOLE = "rows that its configuration divides";
test.each([
  ["GPTNeoX", { num_attention_heads: 5 }, WHOLE],
  ["GPTNeoX", { num_attention_heads: 2 ** 31 - 1 }, "'num_attention_heads': expected a whole number of 1 … 512"],
  ["Falcon-2", { num_kv_heads: 3 }, "'num_kv_heads': expected a divisor of 4 heads"],
  ["Qwen3_5", { linear_num_value_heads: 2 ** 31 - 2 }, "'linear_num_value_heads': expected a whole number of 1 … 512"],
  ["Qwen3_5", { linear_num_value_heads: 8 }, WHOLE],
  ["Qwen3_5", { linear_key_head_dim: 2 ** 31 - 1 }, "'linear_key_head_dim': expected a whole number of 1 … 2048"],
  ["Mamba2", { n_groups: 3 }, WHOLE],
  ["Roberta", { max_position_embeddings: 9999, pad_token_id: 255 }, WHOLE],
  ["Mpt", { expansion_ratio: 1e-3 }, "'expansion_ratio': expected a factor that gives a whole width"],
] as const)("%s with %j is refused", async (name, change, says) => {
  const original = originals[name]!;
  const changed = { ...original, config: { ...original.config, ...change } };
  await expect(convert(`${name}-${JSON.stringify(change)}`.slice(0, 60), changed)).rejects.toThrow(says);
});

test.each([
  ["Mistral", "mistral", "llama"],
  ["Ministral3", "ministral3", "mistral3"],
])("an image model of Mistral whose text model is %s's is %s", async (name, kind, arch) => {
  const { config, tensors, ...rest } = originals[name]!;
  const inner = Object.entries(tensors).map(([key, value]) => [`language_model.${key}`, value] as const);
  const whole = { architectures: ["Mistral3ForConditionalGeneration"], text_config: { ...config, model_type: kind } };
  const gguf = openGguf(await convert(`image-${name}`, { ...rest, config: whole, tensors: Object.fromEntries(inner) }));
  expect(gguf.metadata.get("general.architecture")).toBe(arch);
  loadProgram(gguf);
  gguf.close();
});

/** Compared elsewhere, or with a known difference. */
const ELSEWHERE: readonly string[] = [
  "DistilBertForMaskedLM", // as without the output
  "EuroBertForMaskedLM",
  "ModernBertForMaskedLM",
  "LLaDAMoEModel",
  "RobertaForMaskedLM",
  "XLMRobertaForMaskedLM",
  "Gemma3ForConditionalGeneration", // the text model of an image model
  "Gemma3nForConditionalGeneration",
  "Gemma4ForConditionalGeneration",
  "Mistral3ForConditionalGeneration",
  "PhimoeForCausalLM", // a GGUF routes by softmax, as llama.cpp does; the original by a sparse mixer
  "Qwen3_5ForConditionalGeneration",
  "Qwen3_5MoeForConditionalGeneration",
];

test("every family that is converted has an original", () => {
  const known = Object.values(originals).flatMap(({ config }) => config["architectures"] as string[]);
  expect([...new Set([...known, ...ELSEWHERE])].toSorted()).toEqual(Object.keys(convertible).toSorted());
});
