/** Folders of RWKV under their published names, made from GGUFs in llama.cpp's layout: the weights are theirs. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { f16 } from "../../../src/engine/formats/quant/f16.ts";
import { f32 } from "../../../src/engine/formats/quant/f32.ts";
import { convertModel } from "../../../src/library/convert/convert.ts";
import { byteTokenizer, encodeSafetensors, exactModel, pack, writeFolder, type PlainTensor } from "./hugging-face.ts";

const folder = mkdtempSync(join(tmpdir(), "hearth-rwkv-"));
afterAll(() => rmSync(folder, { recursive: true }));

type Values = Float32Array<ArrayBuffer>;
interface Weight {
  /** The shape in the GGUF's order: the fastest-varying dimension first. */
  readonly shape: readonly number[];
  readonly values: Values;
}

function weightsOf(name: string): Map<string, Weight> {
  const all = exactModel(name, f16).tensors.map(({ name: own, shape, quant, data }): [string, Weight] => {
    const values = new Float32Array(shape.reduce((product, size) => product * size, 1));
    quant.dequantize(data as Uint8Array, values);
    return [own, { shape, values }];
  });
  return new Map(all);
}

const plain = (shape: readonly number[], values: Values): PlainTensor => ({
  dtype: "F32",
  shape,
  data: pack(values, f32),
});
const asIs = ({ shape, values }: Weight): PlainTensor => plain(shape.toReversed(), values);
/** One or several matrices (out, in) as (in, out). */
function transposed({ shape, values }: Weight): PlainTensor {
  const [inDim = 0, outDim = 0, count = 1] = shape;
  const out = values.map((_, i) => {
    const [matrix, within] = [Math.floor(i / (inDim * outDim)), i % (inDim * outDim)];
    return values[matrix * inDim * outDim + (within % outDim) * inDim + Math.floor(within / outDim)]!;
  });
  return plain([...(shape.length > 2 ? [count] : []), inDim, outDim], out);
}
/** Equal parts, each at the place that `order` says. */
function scattered({ shape, values }: Weight, order: readonly number[]): Weight {
  const length = values.length / order.length;
  const out = new Float32Array(values.length);
  for (const [from, to] of order.entries()) out.set(values.slice(from * length, (from + 1) * length), to * length);
  return { shape, values: out };
}
/** The vectors of all mixtures, each by its name. */
function apart({ shape, values }: Weight, names: readonly string[]): Record<string, PlainTensor> {
  const [dim = 0] = shape;
  return Object.fromEntries(
    names.map((name, i) => [name, plain([1, 1, dim], values.slice(i * dim, (i + 1) * dim))] as const),
  );
}

interface Scheme {
  readonly family: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly whole: Readonly<Record<string, string>>;
  readonly layer: string;
  /** Names by the names of a GGUF; `time_mix_X1` and the like have separate rules. */
  readonly names: Readonly<Record<string, string>>;
  readonly attention: string;
  readonly style: "sixth" | "sixth of Qwen" | "fla" | "fla, fused" | "seventh";
}

const SIZES = { hidden_size: 128, intermediate_size: 96, vocab_size: 64, tie_word_embeddings: false };
const SIXTH = { key: "key", value: "value", receptance: "receptance", gate: "gate", output: "output", ln: "ln_x" };
const mixed = (names: Readonly<Record<string, string>>, at: string): Record<string, string> =>
  Object.fromEntries(Object.entries(names).map(([to, from]) => [`time_mix_${to}`, `${at}.${from}`]));
const QWEN_WHOLE = { token_embd: "model.embed_tokens", output_norm: "model.norm", output: "lm_head" };
const QWEN = {
  attn_norm: "input_layernorm",
  ffn_norm: "post_attention_layernorm",
  ffn_gate: "mlp.gate_proj",
  ffn_up: "mlp.up_proj",
  ffn_down: "mlp.down_proj",
};
const FLA = {
  family: "rwkv7",
  config: {
    architectures: ["RWKV7ForCausalLM"],
    head_dim: 64,
    norm_eps: 1e-5,
    hidden_act: "sqrelu",
    decay_low_rank_dim: 8,
    a_low_rank_dim: 16,
    v_low_rank_dim: 24,
    gate_low_rank_dim: 32,
  },
  whole: {
    token_embd: "model.embeddings",
    token_embd_norm: "model.layers.0.pre_norm",
    output_norm: "model.norm",
    output: "lm_head",
  },
  layer: "model.layers",
  names: {
    attn_norm: "attn_norm",
    attn_norm_2: "ffn_norm",
    channel_mix_lerp_k: "ffn.x_k",
    channel_mix_key: "ffn.key.weight",
    channel_mix_value: "ffn.value.weight",
    ...mixed({ key: "k_proj", value: "v_proj", receptance: "r_proj", output: "o_proj", ln: "g_norm" }, "attn"),
  },
  attention: "attn",
} as const;

const schemes: Readonly<Record<string, Scheme>> = {
  rwkv6: {
    family: "rwkv6",
    config: { architectures: ["Rwkv6ForCausalLM"], head_size: 64, layer_norm_epsilon: 1e-5, rescale_every: 1 },
    whole: {
      token_embd: "rwkv.embeddings",
      token_embd_norm: "rwkv.blocks.0.pre_ln",
      output_norm: "rwkv.ln_out",
      output: "head",
    },
    layer: "rwkv.blocks",
    names: {
      attn_norm: "ln1",
      attn_norm_2: "ln2",
      time_mix_first: "attention.time_faaaa",
      channel_mix_lerp_k: "feed_forward.time_maa_k",
      channel_mix_lerp_r: "feed_forward.time_maa_r",
      channel_mix_key: "feed_forward.key.weight",
      channel_mix_value: "feed_forward.value.weight",
      channel_mix_receptance: "feed_forward.receptance.weight",
      ...mixed(SIXTH, "attention"),
    },
    attention: "attention",
    style: "sixth",
  },
  rwkv6qwen2: {
    family: "rwkv6qwen2",
    config: {
      architectures: ["RWKV6Qwen2ForCausalLM"],
      num_attention_heads: 2,
      num_key_value_heads: 1,
      rms_norm_eps: 1e-6,
      lora_rank_tokenshift: 8,
      lora_rank_decay: 16,
    },
    whole: QWEN_WHOLE,
    layer: "model.layers",
    names: {
      ...QWEN,
      ...mixed({ key: "k_proj", value: "v_proj", receptance: "q_proj", output: "o_proj", gate: "gate" }, "self_attn"),
    },
    attention: "self_attn",
    style: "sixth of Qwen",
  },
  "rwkv7 as fla has it": { ...FLA, style: "fla" },
  "rwkv7 with mixtures in one tensor": { ...FLA, style: "fla, fused" },
  "rwkv7 as it was published": {
    family: "rwkv7",
    config: {
      architectures: ["Rwkv7ForCausalLM"],
      head_size: 64,
      layer_norm_epsilon: 1e-5,
      lora_rank_decay: 8,
      lora_rank_iclr: 16,
      lora_rank_value_residual_mix: 24,
      lora_rank_gate: 32,
    },
    whole: {
      token_embd: "model.embeddings",
      token_embd_norm: "model.pre_ln",
      output_norm: "model.ln_out",
      output: "model.head",
    },
    layer: "model.blocks",
    names: {
      attn_norm: "ln1",
      attn_norm_2: "ln2",
      channel_mix_lerp_k: "feed_forward.x_k",
      channel_mix_key: "feed_forward.key.weight",
      channel_mix_value: "feed_forward.value.weight",
      ...mixed(SIXTH, "attention"),
    },
    attention: "attention",
    style: "seventh",
  },
  arwkv7: {
    family: "arwkv7",
    config: { architectures: ["RwkvHybridForCausalLM"], head_size: 64, rms_norm_eps: 1e-6, wkv_version: 7 },
    whole: QWEN_WHOLE,
    layer: "model.layers",
    names: { ...QWEN, ...mixed(SIXTH, "self_attn.time_mixer") },
    attention: "self_attn.time_mixer",
    style: "seventh",
  },
};

/** The tensors of a folder for one of a GGUF. */
function published(name: string, weight: Weight, scheme: Scheme): Record<string, PlainTensor> {
  const [, layer, own = "", part = ""] = /^(?:blk\.(\d+)\.)?(\w+)\.(\w+)$/.exec(name)!;
  if (layer === undefined) return { [`${scheme.whole[own]}.${part}`]: asIs(weight) };
  const [block, at] = [`${scheme.layer}.${layer}`, `${scheme.layer}.${layer}.${scheme.attention}`];
  const vector = plain([1, 1, weight.values.length], weight.values);
  const { style } = scheme;
  const isSixth = style.startsWith("sixth");
  if (own === "time_mix_lerp_fused") {
    if (style === "fla, fused") return { [`${at}.x_x`]: plain([6, 128], weight.values) };
    const names = isSixth ? ["w", "k", "v", "r", "g"] : ["r", "w", "k", "v", "a", "g"];
    return apart(
      weight,
      names.map((each) => `${at}.${isSixth ? "time_maa" : "x"}_${each}`),
    );
  }
  if (own === "time_mix_lerp_x") return { [`${at}.time_maa_x`]: vector };
  if (isSixth && /^time_mix_w\d$/.test(own)) {
    const order = style === "sixth" ? [0, 1, 2, 3, 4] : [3, 1, 2, 0, 4];
    return { [`${at}.${own.replace("mix", "maa")}`]: transposed(scattered(weight, order)) };
  }
  if (own === "time_mix_decay") return { [`${at}.time_decay`]: vector };
  if (own.startsWith("time_mix_decay_")) return { [`${at}.time_${own.slice(9)}`]: transposed(weight) };
  const [, rank, number] = /^time_mix_([wavg])(\d)$/.exec(own) ?? [];
  if (rank !== undefined) {
    if (rank === "v" && layer === "0") return {}; // filled in
    if (number === "0")
      return { [style.startsWith("fla") ? `${at}.${rank}_lora.lora.2.bias` : `${at}.${rank}0`]: vector };
    if (!style.startsWith("fla")) return { [`${at}.${rank}${number}`]: transposed(weight) };
    return { [`${at}.${rank}_lora.lora.${number === "1" ? 0 : 2}.weight`]: asIs(weight) };
  }
  if (own === "time_mix_r_k") return { [`${at}.r_k`]: plain([2, 64], weight.values) };
  if (/^time_mix_k_[ka]$/.test(own)) return { [`${at}.${own.slice(9)}`]: vector };
  const to = scheme.names[own]!;
  if (/_lerp_/.test(own)) return { [`${block}.${to}`]: vector };
  const isScaled = style === "sixth" && /^(time_mix_output|channel_mix_value)$/.test(own);
  const halves = isScaled ? 2 ** Number(layer) : 1; // `rescale_every` is 1
  const values = weight.values.map((value) => value * halves);
  const isWhole = to.endsWith(".weight") || own === "time_mix_first";
  return { [`${block}.${to}${isWhole ? "" : `.${part}`}`]: asIs({ ...weight, values }) };
}

/** A vocabulary of 63 tokens, as published: the empty line, and bytes. */
const VOCABULARY = Array.from({ length: 63 }, (_, i) =>
  i === 9 ? `10 '\\n\\n' 2` : `${i + 1} b'\\x${(128 + i).toString(16)}' 1`,
);

async function convert(scheme: Scheme, tensors: Record<string, PlainTensor>, more: object = {}): Promise<string> {
  const path = join(folder, crypto.randomUUID());
  const isQwen = scheme.whole === QWEN_WHOLE;
  const layers = [...weightsOf(scheme.family).keys()].filter((name) => name.endsWith(".attn_norm.weight")).length;
  const source = await writeFolder(path, {
    "config.json": { ...SIZES, num_hidden_layers: layers, ...scheme.config },
    ...(isQwen
      ? { "tokenizer.json": byteTokenizer(exactModel(scheme.family, f16).metadata) }
      : { "rwkv_vocab_v20230424.txt": `${VOCABULARY.join("\n")}\n` }),
    "model.safetensors": encodeSafetensors(tensors),
    ...more,
  });
  await convertModel({ folder: source, to: `${path}.gguf` });
  return `${path}.gguf`;
}

function tensorsOf(scheme: Scheme): Record<string, PlainTensor> {
  const all = [...weightsOf(scheme.family)].map(([name, weight]) => published(name, weight, scheme));
  return Object.assign({}, ...all) as Record<string, PlainTensor>;
}

describe.each(Object.entries(schemes))("a folder of %s", (_, scheme) => {
  test("has the weights of its GGUF", async () => {
    const gguf = openGguf(await convert(scheme, tensorsOf(scheme)));
    const wanted = weightsOf(scheme.family);
    for (const number of ["0", "1", "2"]) {
      const rates = wanted.get(`blk.0.time_mix_a${number}.weight`);
      if (rates) wanted.set(`blk.0.time_mix_v${number}.weight`, rates);
    }
    expect([...gguf.tensors.keys()].toSorted()).toEqual([...wanted.keys()].toSorted());
    for (const [name, { shape, values }] of wanted) {
      const found = gguf.tensors.get(name)!;
      const got = new Float32Array(values.length);
      found.quant.dequantize(gguf.read(name), got);
      const dims = (sizes: readonly number[]) => sizes.filter((size) => size > 1);
      expect([name, dims(found.shape), got]).toEqual([name, dims(shape), values]);
    }
    gguf.close();
  });
});

test("ranks, sizes and the World vocabulary come from the folder", async () => {
  const scheme = schemes["rwkv7 as fla has it"]!;
  const gguf = openGguf(await convert(scheme, tensorsOf(scheme)));
  expect(Object.fromEntries(gguf.metadata)).toMatchObject({
    "rwkv7.wkv.head_size": 64,
    "rwkv7.feed_forward_length": 96,
    "rwkv7.attention.decay_lora_rank": 8,
    "rwkv7.attention.iclr_lora_rank": 16,
    "rwkv7.attention.value_residual_mix_lora_rank": 24,
    "rwkv7.attention.gate_lora_rank": 32,
    "tokenizer.ggml.model": "rwkv",
    "tokenizer.ggml.bos_token_id": 0,
    "tokenizer.ggml.eos_token_id": 0,
    "tokenizer.ggml.eot_token_id": 10,
  });
  expect((gguf.metadata.get("tokenizer.ggml.tokens") as string[]).slice(0, 11)).toEqual([
    "<s>",
    ...Array.from({ length: 9 }, (_, i) => `\\x8${i}`),
    "\\n\\n",
  ]);
  expect(gguf.metadata.get("tokenizer.chat_template")).toContain("Assistant:");
  gguf.close();
});

test("the folder's chat template is kept", async () => {
  const scheme = schemes["rwkv6"]!;
  const gguf = openGguf(await convert(scheme, tensorsOf(scheme), { "chat_template.jinja": "{{ messages }}" }));
  expect(gguf.metadata.get("tokenizer.chat_template")).toBe("{{ messages }}");
  expect(gguf.metadata.get("rwkv6.rescale_every_n_layers")).toBe(1);
  gguf.close();
});

test("a missing mixture, a vector in place of a matrix, or another version is refused", async () => {
  const scheme = schemes["rwkv7 as fla has it"]!;
  const { "model.layers.1.attn.x_g": gone, ...few } = tensorsOf(scheme);
  await expect(convert(scheme, few)).rejects.toThrow("'blk.1.time_mix_lerp_fused.weight': expected parts 0 … 5");
  const older = schemes["rwkv7 as it was published"]!;
  const short = { ...tensorsOf(older), "model.blocks.1.attention.w1": plain([128], new Float32Array(128)) };
  await expect(convert(older, short)).rejects.toThrow("attention.w1': expected a matrix, or several, got (128)");
  const hybrid = { ...schemes["arwkv7"]!, config: { ...schemes["arwkv7"]!.config, wkv_version: 6 } };
  await expect(convert(hybrid, tensorsOf(hybrid))).rejects.toThrow("'wkv_version': expected 7, got 6");
  const qwen = schemes["rwkv6qwen2"]!;
  const odd = { ...tensorsOf(qwen), "model.layers.0.self_attn.time_maa_w1": plain([128, 41], new Float32Array(5248)) };
  await expect(convert(qwen, odd)).rejects.toThrow("expected a transposed matrix of 5 parts, got (128, 41)");
  expect(gone).toBeDefined();
});
