/**
 * Tiny models with an additional draft layer. `logits/NAME+draft.f32` holds its llama.cpp logits for TOKENS, written by
 * bench/record-draft-logits.ts.
 */
import { makeRng } from "../../../src/engine/text/rng.ts";
import type { WriteModel, WriteTensor } from "../../../src/engine/formats/files/write.ts";
import { quants } from "../../../src/engine/formats/quant/index.ts";
import { gaussians } from "../../conformance/weights.ts";
import { makeModel, VOCAB } from "./models.ts";

/** Separate tensors in its file: an embedding and a head, a last norm, or neither. */
const OWN = {
  qwen35: ["shared_head_norm"],
  glm4moe: ["shared_head_norm", "embed_tokens", "shared_head_head"],
  deepseek2: [],
} as const satisfies Record<string, readonly string[]>;

export const draftNames = Object.keys(OWN) as (keyof typeof OWN)[]; // in order

/** The named model, with a copy of its last layer with other values as the draft layer. */
export function makeDraftModel(name: keyof typeof OWN): WriteModel {
  const { metadata, tensors } = makeModel(name);
  const layers = Math.max(...tensors.map(({ name: each }) => Number(/^blk\.(\d+)/.exec(each)?.[1] ?? 0))) + 1;
  const dim = tensors.find(({ name: each }) => each === "token_embd.weight")!.shape[0]!;
  const [from, to] = [`blk.${layers - 1}.`, `blk.${layers}.`];
  const copied = tensors
    .filter(({ name: each }) => each.startsWith(from))
    .map((each) => ({ ...each, name: each.name.replace(from, to), data: reversed(each) }));
  const rng = makeRng(11);
  const floats = (part: string, shape: readonly number[], mean: number): WriteTensor => {
    const count = shape.reduce((a, b) => a * b, 1);
    const spread = mean === 0 ? 1 / Math.sqrt(shape[0]!) : 0.3;
    const values = gaussians(count, rng, (normal) => mean + spread * normal);
    return { name: `${to}nextn.${part}.weight`, shape, quant: quants.f32, data: new Uint8Array(values.buffer) };
  };
  const shapes: Readonly<Record<string, readonly number[]>> = {
    enorm: [dim],
    hnorm: [dim],
    eh_proj: [2 * dim, dim],
    shared_head_norm: [dim],
    embed_tokens: [dim, VOCAB],
    shared_head_head: [dim, VOCAB],
  };
  const parts = ["enorm", "hnorm", "eh_proj", ...OWN[name]];
  const own = parts.map((part) => floats(part, shapes[part]!, shapes[part]!.length === 1 ? 1 : 0));
  const keys = { [`${name}.block_count`]: { u32: layers + 1 }, [`${name}.nextn_predict_layers`]: { u32: 1 } };
  return { metadata: { ...metadata, ...keys }, tensors: [...tensors, ...copied, ...own] };
}

/** The values in reverse order. */
function reversed({ data, quant, name }: WriteTensor): Uint8Array {
  if (quant !== quants.f32 || !(data instanceof Uint8Array)) throw new Error(`${name}: expected float32 in memory`);
  return new Uint8Array(new Float32Array(data.slice().buffer).toReversed().buffer);
}

/**
 * A model whose next token depends only on the last one, with a draft layer that gives the same for its input token:
 * only the embedding has an effect.
 */
export function makeMarkov(): WriteModel {
  const dim = 64;
  const { metadata, tensors } = makeModel("qwen35");
  const layers = Math.max(...tensors.map(({ name }) => Number(/^blk\.(\d+)/.exec(name)?.[1] ?? 0))) + 1;
  const floats = (name: string, shape: readonly number[], value: (i: number) => number): WriteTensor => {
    const values = Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => value(i));
    return { name, shape, quant: quants.f32, data: new Uint8Array(values.buffer) };
  };
  const ones = (name: string): WriteTensor => floats(name, [dim], () => 1);
  const silent = /attn_output|ssm_out|ffn_down/;
  const hushed = tensors.map((each) => (silent.test(each.name) ? floats(each.name, each.shape, () => 0) : each));
  const last = `blk.${layers}`;
  const attention = hushed.filter(({ name }) => name.startsWith(`blk.${layers - 1}.`));
  const own = attention.map((each) => ({ ...each, name: each.name.replace(`blk.${layers - 1}.`, `${last}.`) }));
  const drafts = [
    ones(`${last}.nextn.enorm.weight`),
    ones(`${last}.nextn.hnorm.weight`),
    floats(`${last}.nextn.eh_proj.weight`, [2 * dim, dim], (i) => Number(i % (2 * dim) === Math.floor(i / (2 * dim)))),
  ];
  const keys = { "qwen35.block_count": { u32: layers + 1 }, "qwen35.nextn_predict_layers": { u32: 1 } };
  return { metadata: { ...metadata, ...keys }, tensors: [...hushed, ...own, ...drafts] };
}
