/** Whisper base as its authors' folder of safetensors, made from CTranslate2's files. */
import { encodeSafetensors, pack, type PlainTensor } from "../../test/library/convert/hugging-face.ts";
import { f16 } from "../../src/engine/formats/quant/f16.ts";
import { readCtranslate2 } from "./ctranslate2.ts";
import { BASE, idsOf } from "./whisper-folder.ts";
import { configOf } from "./whisper-graph.ts";

/**
 * CTranslate2's names of a layer's norms and linear steps, and transformers' names; a linear step may hold several
 * matrices.
 */
const ENCODER = {
  "self_attention/layer_norm": ["self_attn_layer_norm"],
  "self_attention/linear_0": ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
  "self_attention/linear_1": ["self_attn.out_proj"],
  "ffn/layer_norm": ["final_layer_norm"],
  "ffn/linear_0": ["fc1"],
  "ffn/linear_1": ["fc2"],
} as const;
const DECODER = {
  ...ENCODER,
  "attention/layer_norm": ["encoder_attn_layer_norm"],
  "attention/linear_0": ["encoder_attn.q_proj"],
  "attention/linear_1": ["encoder_attn.k_proj", "encoder_attn.v_proj"],
  "attention/linear_2": ["encoder_attn.out_proj"],
} as const;

/** @param read returns a file of the packages, by its name */
export function whisperTensors(read: (name: string) => Uint8Array): ReadonlyMap<string, Uint8Array> {
  const weights = readCtranslate2(Buffer.concat([read("model.bin.part1"), read("model.bin.part2")]));
  const { dim, ffn, layers, vocab, bins, positions } = BASE;
  const tensors: Record<string, PlainTensor> = {};
  const add = (from: string, to: string, shape: readonly number[], part = 0): void => {
    const count = shape.reduce((product, size) => product * size, 1);
    const values = weights
      .get(from)?.()
      .slice(part * count, (part + 1) * count);
    if (values?.length !== count) throw new Error(`the file of weights has no ${count} values of '${from}'`);
    tensors[`model.${to}`] = { dtype: "F16", shape, data: pack(values, f16) };
  };
  const norm = (from: string, to: string): void => {
    add(`${from}/gamma`, `${to}.weight`, [dim]);
    add(`${from}/beta`, `${to}.bias`, [dim]);
  };
  const layer = (side: string, i: number, names: Readonly<Record<string, readonly string[]>>): void => {
    for (const [place, parts] of Object.entries(names)) {
      const from = `${side}/layer_${i}/${place}`;
      const rows = place === "ffn/linear_0" ? ffn : dim;
      for (const [part, name] of parts.entries()) {
        const to = `${side}.layers.${i}.${name}`;
        if (place.endsWith("layer_norm")) {
          norm(from, to);
          continue;
        }
        add(`${from}/weight`, `${to}.weight`, [rows, place === "ffn/linear_1" ? ffn : dim], part);
        if (!name.endsWith("k_proj")) add(`${from}/bias`, `${to}.bias`, [rows], part);
      }
    }
  };
  for (const [i, from] of [bins, dim].entries()) {
    add(`encoder/conv${i + 1}/weight`, `encoder.conv${i + 1}.weight`, [dim, from, 3]);
    add(`encoder/conv${i + 1}/bias`, `encoder.conv${i + 1}.bias`, [dim]);
  }
  add("encoder/position_encodings/encodings", "encoder.embed_positions.weight", [1500, dim]);
  add("decoder/position_encodings/encodings", "decoder.embed_positions.weight", [positions, dim]);
  add("decoder/embeddings/weight", "decoder.embed_tokens.weight", [vocab, dim]);
  for (let i = 0; i < layers; i++) {
    layer("encoder", i, ENCODER);
    layer("decoder", i, DECODER);
  }
  for (const side of ["encoder", "decoder"]) norm(`${side}/layer_norm`, `${side}.layer_norm`);
  return new Map([
    ["config.json", configOf(BASE, idsOf(read("config.json")))],
    ["model.safetensors", encodeSafetensors(tensors)],
    ["tokenizer.json", read("tokenizer.json")],
  ]);
}
