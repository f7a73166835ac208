/**
 * Tiny models of the architectures in llama.cpp's own test: its hyperparameters, names and shapes (`outlines.jsonl`,
 * written by bench/record-arch-outlines.ts) with weights made here. That test's own weights leave attention nearly
 * uniform, so that a wrong rotation or a lost window would not show; these make it sharp.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { makeRng } from "../../../src/engine/text/rng.ts";
import type { WriteModel, WriteTensor, WriteValue } from "../../../src/engine/formats/files/write.ts";
import { quants } from "../../../src/engine/formats/quant/index.ts";
import { gaussians } from "../../conformance/weights.ts";

export interface Outline {
  readonly arch: string;
  /** Keys of the architecture, and elements of lists. Integers are not distinguished here. */
  readonly numbers: Readonly<Record<string, number | readonly number[]>>;
  readonly others: Readonly<Record<string, string | boolean>>;
  /** By name; `blk.0,1.NAME` and `enc.blk.0,1.NAME` stand for tensors of two layers. */
  readonly shapes: Readonly<Record<string, readonly number[]>>;
}

export const OUTLINE_VOCAB = 128;
export const OUTLINE_TOKENS: Int32Array = Int32Array.from({ length: 24 }, (_, i) => (i * 91 + 17) % OUTLINE_VOCAB);

/** By name. */
export function readOutlines(): ReadonlyMap<string, Outline> {
  const lines = readFileSync(join(import.meta.dir, "outlines.jsonl"), "utf8")
    .trimEnd()
    .split("\n");
  const named = lines.map((line) => JSON.parse(line) as Outline & { name: string });
  return new Map(named.map((each) => [each.name, each]));
}

/** Keys with fractions, whatever their value. */
const FLOATS = /epsilon|freq_base|scal(e|ing\.)|softcapping|clamp|bias$|beta|factor|gate_lower_bound|swiglu|magnitude/;
const WHOLE = /original_context_length/;
const SIGNED = /dimension_sections|deepstack_mapping/;

export function makeOutline(name: string, { arch, numbers, others, shapes }: Outline): WriteModel {
  const metadata: Record<string, WriteValue> = { "general.architecture": arch, ...vocabulary() };
  const types = shapes["token_types.weight"]?.[1];
  if (types !== undefined) metadata["tokenizer.ggml.token_type_count"] = { u32: types };
  for (const [key, value] of Object.entries(others)) metadata[`${arch}.${key}`] = value;
  for (const [key, value] of Object.entries(numbers)) metadata[`${arch}.${key}`] = numberValue(key, value);
  const rng = makeRng(Bun.hash.crc32(name));
  const tensors: WriteTensor[] = [];
  for (const [grouped, shape] of Object.entries(shapes)) {
    for (const tensor of each(grouped)) {
      const count = shape.reduce((a, b) => a * b, 1);
      const values = gaussians(count, rng, valueOf(tensor, shape));
      tensors.push({ name: tensor, shape, quant: quants.f32, data: new Uint8Array(values.buffer) });
    }
  }
  return { metadata, tensors };
}

function numberValue(key: string, value: number | readonly number[]): WriteValue {
  const isFloat = FLOATS.test(key) && !WHOLE.test(key);
  if (typeof value === "number") return isFloat ? { f32: value } : { u32: value };
  if (isFloat) return Float32Array.from(value);
  return SIGNED.test(key) ? Int32Array.from(value) : Uint32Array.from(value);
}

function each(grouped: string): string[] {
  const [, blk, layers, rest] = /^((?:enc\.)?blk)\.([\d,]+)\.(.+)$/.exec(grouped) ?? [];
  return layers === undefined ? [grouped] : layers.split(",").map((layer) => `${blk}.${layer}.${rest}`);
}

function vocabulary(): Record<string, WriteValue> {
  const tokens = Array.from({ length: OUTLINE_VOCAB }, (_, i) => `t${i}`);
  return {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
    "tokenizer.ggml.tokens": tokens,
    "tokenizer.ggml.token_type": Int32Array.from(tokens, () => 1),
    "tokenizer.ggml.merges": ["a b"],
    "tokenizer.ggml.bos_token_id": { u32: 0 },
    "tokenizer.ggml.eos_token_id": { u32: 1 },
  };
}

/** Queries, keys and their norms are large; other matrices keep activations of their size. */
function valueOf(name: string, shape: readonly number[]): (normal: number) => number {
  if (name.endsWith("ssm_a")) return (normal) => -0.2 - Math.abs(normal);
  if (/attn_[qk]_norm\.weight$/.test(name)) return (normal) => 1.5 + 0.4 * normal;
  if (/norm(_exps|_\d)?(\.weight)?$|ssm_d$/.test(name)) return (normal) => 1 + 0.2 * normal;
  if (/scales?(\.weight)?$/.test(name)) return (normal) => 1 + 0.1 * normal;
  if (name.startsWith("rope_")) return (normal) => 1.5 + 0.3 * Math.abs(normal);
  if (name.endsWith("sinks.weight")) return (normal) => normal;
  if (/\.bias$|exp_probs_b$/.test(name)) return (normal) => 0.3 * normal;
  if (name === "token_embd.weight") return (normal) => normal;
  if (name === "position_embd.weight") return (normal) => 0.5 * normal;
  const isSharp = /attn_(q|k|qkv|q_b|k_b|kv_b)\.weight$/.test(name);
  return (normal) => ((isSharp ? 2 : 1) / Math.sqrt(shape[0]!)) * normal;
}
