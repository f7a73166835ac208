/** Folders of over 50 families, converted: logits or states equal the original implementation's. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { projectorGguf } from "../../../src/engine/formats/gguf/repair/index.ts";
import { f32 } from "../../../src/engine/formats/quant/f32.ts";
import { openImageEncoder } from "../../../src/engine/vision/index.ts";
import { convertible } from "../../../src/library/convert/archs/index.ts";
import { nmse } from "../../engine/backends/compare.ts";
import { encodeSafetensors, pack, type writeFolder } from "./hugging-face.ts";
import { everyLevel } from "../../engine/backends/simd/levels.ts";
import { seenBy } from "./pictures.ts";
import {
  answerOf,
  boundOf,
  convertOriginal,
  heardRows,
  readOriginals,
  ROWS,
  scoreError,
  type Original,
} from "./originals.ts";

const NMSE_MAX = 1e-6;
const SOUND_NMSE_MAX = 1e-9;
const SEEN_NMSE_MAX = 1e-11;
const originals = await readOriginals();
const folder = mkdtempSync(join(tmpdir(), "hearth-originals-"));
afterAll(() => rmSync(folder, { recursive: true }));

type Files = Parameters<typeof writeFolder>[1];

const convert = (name: string, original: Original, more: Files = {}): Promise<string> =>
  convertOriginal(folder, { name, original, more });

test.each(Object.entries(originals))(
  "the converted model gives the answers of transformers: %s",
  async (name, original) => {
    const asked = { ...original, hears: original.sound !== undefined };
    const got = await answerOf(await convert(name, original), asked, cpuBackend);
    const expected = recorded(original);
    const rows = original.second === undefined ? original.ids.length / ROWS : 1;
    expect(got.length).toBe(expected.length * rows);
    const isScore = original.second !== undefined;
    const error = isScore ? scoreError(got[0]!, expected[0]!) : nmse(got.subarray(-expected.length), expected);
    expect(error).toBeLessThan(boundOf(name));
  },
);

const floatsOf = (text: string): Float32Array => new Float32Array(Uint8Array.from(Buffer.from(text, "base64")).buffer);
const recorded = ({ last }: Original): Float32Array => floatsOf(last);

test("the encoder of Whisper gives the rows of transformers", async () => {
  const original = originals["Whisper"]!;
  const gguf = openGguf(await convert("Whisper-sound", original));
  const expected = floatsOf(original.sound!);
  expect(nmse((await heardRows(gguf)).subarray(-expected.length), expected)).toBeLessThan(SOUND_NMSE_MAX);
  gguf.close();
});

test.each([{ level: "cpu", backend: cpuBackend }, ...everyLevel])(
  "the encoder of Llama 3.2 Vision gives the pixels and rows of transformers: $level",
  async ({ level, backend }) => {
    const original = originals["Mllama-images"]!;
    const gguf = openGguf(await convert(`Mllama-${level}`, original));
    const pictures = original.pictures!;
    const seen = await seenBy(backend, { gguf, program: loadProgram(gguf), pictures });
    expect(seen.map(({ canvas, pixels }) => ({ canvas, pixels }))).toEqual(
      pictures.map(({ canvas, pixels }) => ({ canvas, pixels })),
    );
    for (const { error } of seen) expect(error).toBeLessThan(SEEN_NMSE_MAX);
    gguf.close();
  },
);

describe("a matrix after the pooling of sentence-transformers", () => {
  const [inDim, outDim] = [64, 48];
  const values = Float32Array.from({ length: inDim * outDim }, (_, i) => Math.f16round(Math.sin(i)));
  const files = (activation: string): Files => ({
    "modules.json": ["Transformer", "Pooling", "Dense", "Normalize"].map((name, i) => ({
      type: `sentence_transformers.models.${name}`,
      path: i === 0 ? "" : `${i}_${name}`,
    })),
    "1_Pooling/config.json": { pooling_mode: "mean" },
    "2_Dense/config.json": { activation_function: `torch.nn.modules.${activation}` },
    "2_Dense/model.safetensors": encodeSafetensors({
      "linear.weight": { dtype: "F32", shape: [outDim, inDim], data: pack(values, f32) },
    }),
  });

  test("changes the width of T5's vectors", async () => {
    const original = originals["T5Encoder"]!;
    const path = await convert("T5Encoder-dense", original, files("linear.Identity"));
    const got = await answerOf(path, original, cpuBackend);
    const states = recorded(original);
    const expected = Float32Array.from({ length: ROWS * outDim }, (_, at) => {
      const [row, out] = [Math.floor(at / outDim), at % outDim];
      let sum = 0;
      for (let i = 0; i < inDim; i++) sum += values[out * inDim + i]! * states[row * inDim + i]!;
      return sum;
    });
    expect(got.length).toBe(original.ids.length * outDim);
    expect(nmse(got.subarray(-expected.length), expected)).toBeLessThan(NMSE_MAX);
  });

  test.each([
    ["T5Encoder", "activation.Tanh", "'activation_function': expected 'torch.nn.modules.linear.Identity', got"],
    ["Bert", "linear.Identity", "'modules.json': expected Transformer, Pooling and Normalize, got"],
  ])("is refused if %s cannot have one: %s", async (name, activation, says) => {
    await expect(convert(`${name}-${activation}`, originals[name]!, files(activation))).rejects.toThrow(says);
  });
});

test("a T5 without an output, whose states are not scaled, has its embedding as the output", async () => {
  const original = originals["T5"]!;
  const copied = { ...original, config: { ...original.config, scale_decoder_outputs: false } };
  const [own, tied] = [await convert("T5-copied", copied), await convert("T5-tied", original)];
  const [got, scaled] = [await answerOf(own, copied, cpuBackend), await answerOf(tied, copied, cpuBackend)];
  const expected = scaled.map((value) => value * Math.sqrt(64));
  expect(nmse(got, expected)).toBeLessThan(1e-12);
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
  [{ hidden_act: "silu" }, "'vision_config.hidden_act': expected 'gelu', got \"silu\""],
  [{ supported_aspect_ratios: [[1, 1]] }, "'vision_config.supported_aspect_ratios': expected [[1,1],[1,2],[1,3],"],
  [{ max_num_tiles: 1000 }, "'vision_config.max_num_tiles': expected a whole number of 1 … 64, got 1000"],
  [{ num_global_layers: 3 }, "expected a weight for 'v.global.blk.2.attn_norm.weight', got none"],
  [{ num_global_layers: 1 }, "'mllama' has no such weight"],
] as const)("an encoder of Llama 3.2 Vision with %j is refused", async (change, says) => {
  const original = originals["Mllama-images"]!;
  const vision = { ...(original.config["vision_config"] as object), ...change };
  const config = { ...original.config, vision_config: vision };
  await expect(convert(`eyes-${JSON.stringify(change)}`.slice(0, 60), { ...original, config })).rejects.toThrow(says);
});

test("image_mean and image_std of the preprocessor go into the file", async () => {
  const colours = { image_mean: [0.5, 0.25, 0.125], image_std: [1, 0.5, 0.25] };
  const more = { "preprocessor_config.json": colours };
  const gguf = openGguf(await convert("eyes-colours", originals["Mllama-images"]!, more));
  const encoder = await openImageEncoder(projectorGguf(gguf)!, { backend: cpuBackend, text: undefined, threads: 1 });
  const [pixels] = encoder.pixels({ width: 1, height: 1, data: new Uint8Array(3) });
  expect([0, 1, 2].map((channel) => pixels!.values[channel * 28 * 28]!)).toEqual([-0.5, -0.5, -0.5]);
  encoder.close();
  gguf.close();
  const short = { "preprocessor_config.json": { image_mean: [0.5] } };
  const refused = convert("eyes-short", originals["Mllama-images"]!, short);
  await expect(refused).rejects.toThrow("'preprocessor_config.json': 'image_mean': expected three numbers");
});

test.each([
  ["Mistral", "mistral", "llama"],
  ["Ministral3", "ministral3", "mistral3"],
])("a Mistral image model with the text model %s has the architecture %s", async (name, kind, arch) => {
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
  "KimiK3ForConditionalGeneration", // transformers does not have it: kimi-k3.test.ts
  "Mistral3ForConditionalGeneration",
  "RobertaForSequenceClassification", // as XLM-RoBERTa's
  "PhimoeForCausalLM", // a GGUF routes by softmax, as llama.cpp does; the original by a sparse mixer
  "RWKV6Qwen2ForCausalLM", // transformers does not have RWKV 6 and 7: rwkv.test.ts
  "RWKV7ForCausalLM",
  "Rwkv6ForCausalLM",
  "Rwkv7ForCausalLM",
  "RwkvHybridForCausalLM",
  "Qwen3_5ForConditionalGeneration",
  "Qwen3_5MoeForConditionalGeneration",
];

test("every convertible architecture has a model of transformers to compare with", () => {
  const known = Object.values(originals).flatMap(({ config }) => config["architectures"] as string[]);
  expect([...new Set([...known, ...ELSEWHERE])].toSorted()).toEqual(Object.keys(convertible).toSorted());
});
