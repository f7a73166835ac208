/** Folders of Kimi K3 as published, made from a GGUF in llama.cpp's layout: the logits are that file's. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf, type WriteModel } from "../../../src/engine/formats/files/write.ts";
import { f32 } from "../../../src/engine/formats/quant/f32.ts";
import { quants } from "../../../src/engine/formats/quant/index.ts";
import { convertModel } from "../../../src/library/convert/convert.ts";
import { TOKENS } from "../../engine/architectures/models.ts";
import { nmse } from "../../engine/backends/compare.ts";
import { byteTokenizer, encodeSafetensors, exactModel, pack, writeFolder, type PlainTensor } from "./hugging-face.ts";
import { f16 } from "../../../src/engine/formats/quant/f16.ts";

const folder = mkdtempSync(join(tmpdir(), "hearth-kimi-k3-"));
afterAll(() => rmSync(folder, { recursive: true }));

type Values = Float32Array<ArrayBuffer>;
type Weights = Map<string, { readonly shape: readonly number[]; readonly values: Values }>;

/** The GGUF's model, with decays below 0 and weights that F16 has, and its weights. */
function madeModel(): { model: WriteModel; weights: Weights } {
  const { metadata, tensors } = exactModel("kimi-k3", f16);
  const weights: Weights = new Map();
  const plain = tensors.map((tensor) => {
    const { name, shape, quant } = tensor;
    const values = new Float32Array(shape.reduce((all, size) => all * size, 1));
    quant.dequantize(tensor.data as Uint8Array, values);
    if (name.endsWith("ssm_a")) values.forEach((value, i) => (values[i] = Math.fround(-Math.exp(value))));
    weights.set(name, { shape, values });
    return { ...tensor, quant: f32, data: new Uint8Array(values.buffer) };
  });
  return { model: { metadata, tensors: plain }, weights };
}

const { model, weights } = madeModel();

/** Published names by the names of a GGUF. */
const NAMES: Readonly<Record<string, string>> = {
  attn_norm: "input_layernorm",
  ffn_norm: "post_attention_layernorm",
  attn_q: "self_attn.q_proj",
  attn_k: "self_attn.k_proj",
  attn_v: "self_attn.v_proj",
  ssm_conv1d_q: "self_attn.q_conv1d",
  ssm_conv1d_k: "self_attn.k_conv1d",
  ssm_conv1d_v: "self_attn.v_conv1d",
  ssm_f_a: "self_attn.f_a_proj",
  ssm_f_b: "self_attn.f_b_proj",
  ssm_beta: "self_attn.b_proj",
  ssm_g: "self_attn.g_proj",
  ssm_norm: "self_attn.o_norm",
  attn_output: "self_attn.o_proj",
  attn_q_a: "self_attn.q_a_proj",
  attn_q_a_norm: "self_attn.q_a_layernorm",
  attn_q_b: "self_attn.q_b_proj",
  attn_kv_a_mqa: "self_attn.kv_a_proj_with_mqa",
  attn_kv_a_norm: "self_attn.kv_a_layernorm",
  attn_gate: "self_attn.g_proj",
  ffn_gate: "mlp.gate_proj",
  ffn_up: "mlp.up_proj",
  ffn_down: "mlp.down_proj",
  ffn_gate_inp: "block_sparse_moe.gate",
  ffn_gate_shexp: "block_sparse_moe.shared_experts.gate_proj",
  ffn_up_shexp: "block_sparse_moe.shared_experts.up_proj",
  ffn_down_shexp: "block_sparse_moe.shared_experts.down_proj",
  ffn_routed_down: "block_sparse_moe.routed_expert_down_proj",
  ffn_routed_up: "block_sparse_moe.routed_expert_up_proj",
  ffn_routed_norm: "block_sparse_moe.routed_expert_norm",
};
const WHOLE: Readonly<Record<string, string>> = {
  "token_embd.weight": "model.embed_tokens.weight",
  "output_norm.weight": "model.norm.weight",
  "output.weight": "lm_head.weight",
};
const EXPERTS: Readonly<Record<string, string>> = { ffn_gate_exps: "w1", ffn_up_exps: "w3", ffn_down_exps: "w2" };

const plain = (shape: readonly number[], values: Values): PlainTensor => ({
  dtype: "F32",
  shape,
  data: pack(values, f32),
});

/** A vector of scores, as a norm and a projection. */
function scoreParts(at: string, values: Values): Record<string, PlainTensor> {
  const norm = values.map((_, i) => (i % 2 === 0 ? 0.5 : 2));
  const projection = values.map((value, i) => value / norm[i]!);
  return {
    [`${at}_norm.weight`]: plain([values.length], norm),
    [`${at}_proj.weight`]: plain([1, values.length], projection),
  };
}

/** The rows of keys and values of each head, in sequence. */
function fused(layer: number): PlainTensor {
  const [k, v] = ["attn_k_b", "attn_v_b"].map((name) => weights.get(`blk.${layer}.${name}.weight`)!) as [any, any];
  const [keyDim, rank, heads] = k.shape;
  const valueDim = v.shape[1];
  const out = new Float32Array(heads * (keyDim + valueDim) * rank);
  let at = 0;
  for (let head = 0; head < heads; head++) {
    for (let i = 0; i < keyDim; i++)
      for (let r = 0; r < rank; r++) out[at++] = k.values[(head * rank + r) * keyDim + i];
    for (let i = 0; i < valueDim * rank; i++) out[at++] = v.values[head * valueDim * rank + i];
  }
  return plain([heads * (keyDim + valueDim), rank], out);
}

function published(): Record<string, PlainTensor> {
  const all: Record<string, PlainTensor> = {};
  for (const [name, { shape, values }] of weights) {
    const dims = shape.toReversed();
    const [, layer = "", part = ""] = /^blk\.(\d+)\.([^.]+)/.exec(name) ?? [];
    const at = `model.layers.${layer}`;
    if (WHOLE[name]) all[WHOLE[name]] = plain(dims, values);
    else if (name === "output_res_score.weight") Object.assign(all, scoreParts("model.output_attn_res", values));
    else if (part === "attn_res_score") Object.assign(all, scoreParts(`${at}.self_attention_res`, values));
    else if (part === "ffn_res_score") Object.assign(all, scoreParts(`${at}.mlp_res`, values));
    else if (part === "ssm_a")
      all[`${at}.self_attn.A_log`] = plain(
        dims,
        values.map((value) => Math.log(-value)),
      );
    else if (part === "ssm_dt") all[`${at}.self_attn.dt_bias`] = plain(dims, values);
    else if (part === "exp_probs_b") all[`${at}.block_sparse_moe.gate.e_score_correction_bias`] = plain(dims, values);
    else if (part === "attn_k_b") all[`${at}.self_attn.kv_b_proj.weight`] = fused(Number(layer));
    else if (EXPERTS[part]) {
      const [count = 0, ...each] = dims;
      for (let i = 0; i < count; i++) {
        const one = values.slice((i * values.length) / count, ((i + 1) * values.length) / count);
        all[`${at}.block_sparse_moe.experts.${i}.${EXPERTS[part]}.weight`] = plain(each, one);
      }
    } else if (part !== "attn_v_b") all[`${at}.${NAMES[part]}.weight`] = plain(dims, values);
  }
  return Object.fromEntries(Object.entries(all).map(([name, tensor]) => [`language_model.${name}`, tensor]));
}

/** A configuration with these keys. */
function config(): Record<string, unknown> {
  const key = (name: string): number => {
    const value = model.metadata[`kimi-k3.${name}`] as { u32?: number; f32?: number };
    return value.u32 ?? value.f32!;
  };
  const kvHeads = [...(model.metadata["kimi-k3.attention.head_count_kv"] as Uint32Array)];
  const rank = key("attention.kv_lora_rank");
  return {
    architectures: ["KimiK3ForConditionalGeneration"],
    text_config: {
      hidden_act: "situ",
      mla_use_nope: true,
      moe_router_activation_func: "sigmoid",
      max_position_embeddings: key("context_length"),
      hidden_size: key("embedding_length"),
      num_hidden_layers: key("block_count"),
      intermediate_size: key("feed_forward_length"),
      num_attention_heads: key("attention.head_count"),
      rms_norm_eps: key("attention.layer_norm_rms_epsilon"),
      q_lora_rank: key("attention.q_lora_rank"),
      kv_lora_rank: rank,
      qk_rope_head_dim: key("rope.dimension_count"),
      qk_nope_head_dim: key("attention.key_length_mla") - key("rope.dimension_count"),
      v_head_dim: key("attention.value_length_mla"),
      linear_attn_config: {
        full_attn_layers: kvHeads.flatMap((count, layer) => (count > 0 ? [layer + 1] : [])),
        short_conv_kernel_size: key("ssm.conv_kernel"),
        head_dim: key("kda.head_dim"),
        gate_lower_bound: key("kda.gate_lower_bound"),
      },
      num_experts: key("expert_count"),
      num_experts_per_token: key("expert_used_count"),
      moe_intermediate_size: key("expert_feed_forward_length"),
      num_shared_experts: key("expert_shared_count"),
      first_k_dense_replace: key("leading_dense_block_count"),
      routed_scaling_factor: key("expert_weights_scale"),
      moe_renormalize: model.metadata["kimi-k3.expert_weights_norm"] ?? false,
      routed_expert_hidden_size: key("expert_latent_length"),
      activation_situ_beta: key("activation.situ_beta"),
      activation_situ_linear_beta: key("activation.situ_linear_beta"),
      attn_res_block_size: key("attn_res.block_size"),
    },
  };
}

async function convert(name: string, tensors: Record<string, PlainTensor>): Promise<string> {
  const source = await writeFolder(join(folder, name), {
    "config.json": config(),
    "tokenizer.json": byteTokenizer(model.metadata),
    "model.safetensors": encodeSafetensors(tensors),
  });
  const to = join(folder, `${name}.gguf`);
  await convertModel({ folder: source, to });
  return to;
}

async function logitsOf(path: string): Promise<Float32Array> {
  const gguf = openGguf(path);
  const program = loadProgram(gguf);
  const session = await cpuBackend.load(program, {
    ctxLen: 256,
    slots: 1,
    precise: true,
    threads: 1,
    cacheDir: undefined,
  });
  const logits = (await session.run([{ slot: 0, start: 0, tokens: TOKENS, logits: "all" }])).slice();
  session.close();
  gguf.close();
  return logits;
}

test("a folder gives the logits of its GGUF", async () => {
  const original = join(folder, "original.gguf");
  await writeGguf(original, model);
  const vision = {
    "vision_tower.x.weight": plain([2], new Float32Array(2)),
    "mm_projector.y.weight": plain([2], new Float32Array(2)),
  };
  const [wanted, got] = [
    await logitsOf(original),
    await logitsOf(await convert("plain", { ...published(), ...vision })),
  ];
  expect(nmse(got, wanted)).toBeLessThan(1e-9);
});

test("experts in packed MXFP4 keep their bits, and are refused without scales", async () => {
  const tensors = published();
  const kept: Record<string, Values> = {};
  for (const [name, { shape }] of Object.entries(tensors)) {
    if (!name.includes(".experts.")) continue;
    const [rows = 0, columns = 0] = shape;
    const codes = Uint8Array.from({ length: rows * columns }, (_, i) => (i * 7 + rows) % 16);
    const scales = Uint8Array.from({ length: (rows * columns) / 32 }, (_, i) => 120 + (i % 5));
    delete tensors[name];
    const packed = Uint8Array.from({ length: codes.length / 2 }, (_, i) => codes[2 * i]! | (codes[2 * i + 1]! << 4));
    tensors[`${name}_packed`] = { dtype: "U8", shape: [rows, columns / 2], data: packed };
    tensors[`${name}_scale`] = { dtype: "U8", shape: [rows, columns / 32], data: scales };
    kept[name] = Float32Array.from(codes, (code, i) => CODES[code]! * 2 ** (scales[i >> 5]! - 127));
  }
  const gguf = openGguf(await convert("packed", tensors));
  loadProgram(gguf); // names and shapes are right
  for (const [part, from] of Object.entries(EXPERTS)) {
    const { quant, shape } = gguf.tensors.get(`blk.1.${part}.weight`)!;
    expect(quant).toBe(quants.mxfp4);
    const all = new Float32Array(shape.reduce((product, size) => product * size, 1));
    quant.dequantize(gguf.read(`blk.1.${part}.weight`), all);
    const each = Array.from({ length: shape[2]! }, (_, i) => [
      ...kept[`language_model.model.layers.1.block_sparse_moe.experts.${i}.${from}.weight`]!,
    ]);
    expect(Array.from(all, (value) => value + 0)).toEqual(each.flat().map((value) => value + 0)); // no -0
  }
  gguf.close();
  const scale = Object.keys(tensors).find((name) => name.endsWith("_scale"))!;
  const { [scale]: _, ...lacking } = tensors;
  await expect(convert("lacking", lacking)).rejects.toThrow(`expected scales in '${scale}', got none`);
});

/** FP4 (E2M1). */
const CODES = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0, -0.5, -1, -1.5, -2, -3, -4, -6];

test("an attention score without its norm, or with a norm of another width, is refused", async () => {
  const name = "language_model.model.output_attn_res_norm.weight";
  const { [name]: norm, ...lacking } = published();
  await expect(convert("unnormed", lacking)).rejects.toThrow(`expected factors in '${name}', got none`);
  const short = { ...lacking, [name]: plain([2], new Float32Array(2)) };
  await expect(convert("short", short)).rejects.toThrow(`'${name}': expected ${norm!.shape[0]} factors, got 2`);
});
