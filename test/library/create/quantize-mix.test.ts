/**
 * The block type of every tensor, against the choices of `llama-quantize` (ggml 0.25.1) for models of the same shapes.
 */
import { describe, expect, test } from "bun:test";
import { AppError } from "../../../src/base/errors.ts";
import type { Metadata, MetadataValue, TensorInfo } from "../../../src/engine/formats/gguf/gguf.ts";
import { quants, type QuantName } from "../../../src/engine/formats/quant/index.ts";
import { chooseTypes, fileTypeId, parseFileType } from "../../../src/library/create/quantize-mix.ts";

interface Shapes {
  readonly arch: string;
  readonly nLayers: number;
  readonly keys: Readonly<Record<string, number>>;
  /** Tensors of a layer: names and row lengths. */
  readonly layer: Readonly<Record<string, number>>;
  readonly top: Readonly<Record<string, number>>;
}

/** Tensors in an order that differs from llama.cpp's: the last layer first. */
function modelOf({ arch, nLayers, keys, layer, top }: Shapes, quant: QuantName = "f16") {
  const metadata = new Map<string, MetadataValue>([
    ["general.architecture", arch],
    [`${arch}.block_count`, nLayers],
  ]);
  for (const [key, value] of Object.entries(keys)) metadata.set(`${arch}.${key}`, value);
  const tensors = new Map<string, TensorInfo>();
  const add = (name: string, shape: number[]): void => {
    tensors.set(name, { name, shape, quant: quants[quant], byteLength: 0, shard: 0, offset: 0 });
  };
  for (let i = nLayers - 1; i >= 0; i--) {
    for (const [name, rowLen] of Object.entries(layer)) add(`blk.${i}.${name}.weight`, [rowLen, 4]);
  }
  for (const [name, rowLen] of Object.entries(top)) add(`${name}.weight`, [rowLen, 4]);
  return { metadata: metadata as Metadata, tensors };
}

const ATTENTION = { attn_q: 256, attn_k: 256, attn_v: 256, attn_output: 256 };
const DENSE = { ...ATTENTION, ffn_up: 256, ffn_gate: 256, ffn_down: 256 };
const EXPERTS = { ...ATTENTION, ffn_up_exps: 256, ffn_gate_exps: 256, ffn_down_exps: 256 };
const FUSED = { attn_qkv: 256, attn_output: 256, ffn_up: 256, ffn_down: 256 };
const ODD = { ...DENSE, ffn_up: 48, ffn_down: 320 };
const SHARED_EXPERT = { ...EXPERTS, ffn_down_shexp: 256 };
const UNTIED = { token_embd: 256, output: 256 };

const COLUMNS = "token_embd ^output attn_q attn_k attn_output ffn_up attn_v ffn_down".split(" ");
// prettier-ignore
const LETTERS: Readonly<Record<string, string>> = {
  f16: "h", q4_0: "a", q4_1: "c", q5_0: "d", q5_1: "e", q8_0: "8", q2_K: "2", q3_K: "3", q4_K: "4", q5_K: "5", q6_K: "6",
};

interface Case {
  readonly what: string;
  readonly shapes: Shapes;
  /** File type; the types of `COLUMNS`, one letter if all layers have the same, else one per layer. */
  readonly expected: readonly (readonly [string, string])[];
}

// prettier-ignore
const CASES: readonly Case[] = [
  { what: "17 layers, grouped heads, rows of whole blocks",
    shapes: { arch: "llama", nLayers: 17, keys: {}, layer: DENSE, top: UNTIED },
    expected: [
    ["Q4_0", "a 6 a a a a a a"],
    ["Q4_1", "c 6 c c c c c c"],
    ["Q5_0", "d 6 d d d d d d"],
    ["Q5_1", "e 6 e e e e e e"],
    ["Q8_0", "8 8 8 8 8 8 8 8"],
    ["Q2_K", "2 6 2 2 3 2 3 3"],
    ["Q3_K_S", "3 6 3 3 3 3 3 3"],
    ["Q3_K_M", "3 6 3 3 4 3 55444444444444444 54444444444444444"],
    ["Q3_K_L", "3 6 3 3 5 3 5 5"],
    ["Q4_K_S", "4 6 4 4 4 4 55554444444444444 55444444444444444"],
    ["Q4_K_M", "4 6 4 4 4 4 66446446446446666 66446446446446666"],
    ["Q5_K_S", "5 6 5 5 5 5 5 5"],
    ["Q5_K_M", "5 6 5 5 5 5 66556556556556666 66556556556556666"],
    ["Q6_K", "6 6 6 6 6 6 6 6"],
    ["F16", "h h h h h h h h"],
  ] },
  { what: "32 layers of 8 experts",
    shapes: { arch: "llama", nLayers: 32, keys: { expert_count: 8 }, layer: EXPERTS, top: UNTIED },
    expected: [
    ["Q4_0", "a 6 a 8 a a 8 a"],
    ["Q2_K", "2 6 2 8 5 2 8 3"],
    ["Q3_K_S", "3 6 3 8 5 3 8 3"],
    ["Q3_K_M", "3 6 3 8 5 3 8 55444444444444444444444444444444"],
    ["Q3_K_L", "3 6 3 8 3 3 8 5"],
    ["Q4_K_S", "4 6 4 8 5 4 8 55554444444444444444444444444444"],
    ["Q4_K_M", "4 6 4 8 5 4 8 66664464464464464464464464466666"],
    ["Q5_K_S", "5 6 5 8 5 5 8 5"],
    ["Q5_K_M", "5 6 5 8 5 5 8 66665565565565565565565565566666"],
    ["Q6_K", "6 6 6 8 6 6 8 6"],
  ] },
  { what: "16 layers of 16 experts and a shared one: its matrix does not count as another layer",
    shapes: { arch: "llama", nLayers: 16, keys: { expert_count: 16 }, layer: SHARED_EXPERT, top: UNTIED },
    expected: [
    ["Q3_K_M", "3 6 3 3 4 3 5544444444444444 55444444444444444444444444444444"],
    ["Q4_K_S", "4 6 4 4 4 4 5555444444444444 55554444444444444444444444444444"],
    ["Q4_K_M", "4 6 4 4 4 4 6644644644644666 66664444664444664444664444666666"],
  ] },
  { what: "falcon, with one matrix for query, key and value",
    shapes: { arch: "falcon", nLayers: 32, keys: {}, layer: FUSED, top: UNTIED },
    expected: [
    ["Q4_0", "a 8 a - a a - a"],
    ["Q2_K", "2 8 3 - 2 2 - 3"],
    ["Q3_K_S", "3 8 3 - 3 3 - 3"],
    ["Q3_K_M", "3 8 55444444444444444444444444444444 - 3 3 - 55443343343343343343343343344444"],
    ["Q3_K_L", "3 8 5 - 4 3 - 4"],
    ["Q4_K_S", "4 8 55554444444444444444444444444444 - 4 4 - 4"],
    ["Q4_K_M", "4 8 66664464464464464464464464466666 - 4 4 - 66554454454454454454454454455555"],
    ["Q5_K_S", "5 8 5 - 5 5 - 5"],
    ["Q5_K_M", "5 8 66665565565565565565565565566666 - 5 5 - 66665565565565565565565565566666"],
    ["Q6_K", "6 8 6 - 6 6 - 6"],
  ] },
  { what: "rows of 320 and 48, token embedding also the output",
    shapes: { arch: "llama", nLayers: 12, keys: {}, layer: ODD, top: { token_embd: 320 } },
    expected: [
    ["Q4_0", "8 - a a a h a a"],
    ["Q8_0", "8 - 8 8 8 h 8 8"],
    ["Q2_K", "8 - 2 2 3 h 3 a"],
    ["Q3_K_M", "8 - 3 3 4 h 554444444444 d"],
    ["Q3_K_L", "8 - 3 3 5 h 5 e"],
    ["Q4_K_M", "8 - 4 4 4 h 644644644666 8dd8dd8dd888"],
    ["Q5_K_M", "8 - 5 5 5 h 655655655666 8ee8ee8ee888"],
    ["Q6_K", "8 - 6 6 6 h 6 8"],
    ["F16", "h - h h h h h h"],
  ] },
];

describe("chooseTypes", () => {
  for (const { what, shapes, expected } of CASES) {
    test(`${what}: every mix equals llama.cpp's`, () => {
      const rows = expected.map(
        ([type]) => [type, summary(chooseTypes(modelOf(shapes), parseFileType(type)))] as const,
      );
      expect(rows).toEqual([...expected]);
    });
  }

  test("value matrices get more bits at Q2_K if four or more heads share them, and in a 70B model", () => {
    const shared = { "attention.head_count": 8, "attention.head_count_kv": 2 };
    const valueOf = (nLayers: number, type: "Q2_K" | "Q3_K_S" | "Q4_K_M"): QuantName | undefined =>
      chooseTypes(modelOf({ arch: "llama", nLayers, keys: shared, layer: DENSE, top: UNTIED }), type).get(
        "blk.11.attn_v.weight",
      );
    expect([valueOf(32, "Q2_K"), valueOf(32, "Q3_K_S"), valueOf(32, "Q4_K_M")]).toEqual(["q4_K", "q3_K", "q4_K"]);
    expect([valueOf(80, "Q2_K"), valueOf(80, "Q3_K_S"), valueOf(80, "Q4_K_M")]).toEqual(["q5_K", "q5_K", "q5_K"]);
  });

  test("vectors, norms, biases, routers, positions and small recurrent weights keep their type", () => {
    const kept = {
      attn_norm: 256,
      attn_q_norm: 256,
      ffn_gate_inp: 256,
      ssm_conv1d: 4,
      "shortconv.conv": 3,
      attn_rel_b: 32,
      time_mix_w1: 256,
      time_mix_decay_w2: 256,
      time_mix_lerp_fused: 256,
      laurel_l: 64,
      altup_router: 64,
      "indexer.k_proj": 64,
    };
    const model = modelOf({
      arch: "any",
      nLayers: 1,
      keys: {},
      layer: kept,
      top: { position_embd: 256, token_types: 256 },
    });
    const float = { quant: quants.f32, byteLength: 0, shard: 0, offset: 0 };
    for (const name of ["blk.0.attn_q.bias", "rope_freqs.weight", "v.patch_embd.weight", "blk.0.ssm_a"]) {
      model.tensors.set(name, {
        ...float,
        name,
        shape: name.includes("bias") ? [256, 256] : name.includes("v.") ? [256, 256] : [256, 1],
      });
    }
    const types = chooseTypes(model, "Q4_0");
    for (const [name, { quant }] of model.tensors)
      expect([name, types.get(name)]).toEqual([name, quant.name as QuantName]);
  });

  test("a model that is quantized already is refused with Ollama's message", () => {
    for (const quant of ["q8_0", "q4_K", "mxfp4"] as const) {
      const model = modelOf({ arch: "llama", nLayers: 1, keys: {}, layer: DENSE, top: UNTIED }, quant);
      const refusal = new AppError("bad_request", "quantization is only supported for F16, BF16 and F32 models");
      expect(() => chooseTypes(model, "Q4_0")).toThrow(refusal);
    }
  });
});

test("file types are found in any case and have llama.cpp's ids", () => {
  expect(["q4_K_M", "Q4_k_m", "q4_k", "q3_K", "Q5_K"].map(parseFileType)).toEqual([
    "Q4_K_M",
    "Q4_K_M",
    "Q4_K_M",
    "Q3_K_M",
    "Q5_K_M",
  ]);
  const names = "f32 f16 q4_0 q4_1 q8_0 q5_0 q5_1 q2_K q3_K_S q3_K_M q3_K_L q4_K_S q4_K_M q5_K_S q5_K_M q6_K bf16";
  const ids = names.split(" ").map((name) => fileTypeId(parseFileType(name)));
  expect(ids).toEqual([0, 1, 2, 3, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 32]); // llama_ftype, llama.h
});

test("an unknown file type is refused with the list of supported types", () => {
  for (const name of ["iq2_xs", "q9_9", "", "toString", "__proto__"]) {
    expect(() => parseFileType(name)).toThrow(
      `unsupported quantization type ${name.toUpperCase()} - supported types are F32, F16, BF16, Q4_0, Q4_1,`,
    );
  }
});

/** A line in the format of the table of cases. */
function summary(types: ReadonlyMap<string, QuantName>): string {
  const layer = (name: string): number => Number(name.split(".")[1]);
  return COLUMNS.map((column) => {
    const exact = column.startsWith("^") ? `${column.slice(1)}.weight` : undefined;
    const names = [...types.keys()].filter((name) => (exact ? name === exact : name.includes(column)));
    const letters = names.sort((a, b) => layer(a) - layer(b)).map((name) => LETTERS[types.get(name)!]);
    return new Set(letters).size > 1 ? letters.join("") : (letters[0] ?? "-");
  }).join(" ");
}
