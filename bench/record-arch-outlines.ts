/**
 * Writes test/engine/architectures/outlines.jsonl: hyperparameters, names and shapes of the models of llama.cpp's own
 * test of architectures, without their weights. `bun bench/record-arch-outlines.ts FOLDER`, where FOLDER is the output
 * of `test-llama-archs -o FOLDER`; then bench/record-arch-logits.ts.
 */
import { readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { archs } from "../src/engine/architectures/index.ts";
import { openGguf } from "../src/engine/formats/files/gguf.ts";
import type { Gguf, MetadataValue } from "../src/engine/formats/gguf/gguf.ts";
import type { Outline } from "../test/engine/architectures/outlines.ts";

/** A window as long as the tested prompt would have no effect. */
const WINDOW = 8;
/** If all experts were used, routing would have no effect. */
const EXPERTS = 4;

/** Models that no real file matches: with experts that llama.cpp ignores, or without the 32 layers that it rotates. */
const LEFT_OUT = ["refact-moe", "baichuan-dense"];
/** Tensors that no real file has: factors that llama.cpp takes from another layer, a norm that it ignores. */
const UNREAL: Readonly<Record<string, RegExp>> = { hrm_text: /\.scale$/, mpt: /attn_k_norm/ };
/** Keys that must be present, although their value has no effect. */
const WANTED = /ssm\.group_count$|^qwen2vl\.attention\.layer_norm_rms_epsilon$/;

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error("expected a folder of GGUF files");
const lines: string[] = [];
for (const file of readdirSync(folder).sort()) {
  if (!file.endsWith(".gguf") || LEFT_OUT.includes(basename(file, ".gguf"))) continue;
  const gguf = openGguf(join(folder, file));
  const outline = outlineOf(gguf);
  gguf.close();
  if (Object.hasOwn(archs, outline.arch)) lines.push(JSON.stringify({ name: basename(file, ".gguf"), ...outline }));
  else console.log(`left out, for the architecture is unknown: ${file}`);
}
await Bun.write(join(import.meta.dir, "../test/engine/architectures/outlines.jsonl"), `${lines.join("\n")}\n`);
console.log(`${lines.length} outlines`);

function outlineOf({ metadata, tensors }: Gguf): Outline {
  const arch = String(metadata.get("general.architecture"));
  const numbers: Record<string, number | readonly number[]> = {};
  const others: Record<string, string | boolean> = {};
  for (const [name, value] of metadata) {
    if (!name.startsWith(`${arch}.`) || (isNothing(value) && !WANTED.test(name))) continue;
    const key = name.slice(arch.length + 1);
    if (typeof value === "string" || typeof value === "boolean") others[key] = value;
    else numbers[key] = typeof value === "object" ? Array.from(value, Number) : sharpened(key, Number(value));
  }
  const shapes: Record<string, readonly number[]> = {};
  for (const { name, shape } of tensors.values()) {
    if (name.endsWith("input_scale") || UNREAL[arch]?.test(name)) continue;
    shapes[name] = isOfExperts(name) ? [...shape.slice(0, -1), EXPERTS] : shape;
  }
  return { arch, numbers, others, shapes: together(shapes) };
}

function sharpened(key: string, value: number): number {
  if (key === "attention.sliding_window") return WINDOW;
  return key === "expert_count" ? EXPERTS : value;
}

function isOfExperts(name: string): boolean {
  return !/norm/.test(name) && /_(ch)?exps\.(weight|bias|scale)$|ffn_gate_inp\.|exp_probs_b/.test(name);
}

/** True for values without effect: zeros, empty texts, and lists of marks for absence. */
function isNothing(value: MetadataValue): boolean {
  const each = typeof value === "object" ? Array.from<unknown>(value as ArrayLike<unknown>) : [value];
  return each.every((one) => one === 0 || one === "" || one === -1 || one === 0xffff_ffff || one === -Infinity);
}

/** Groups tensors of layers with the same shape under one name: `blk.0,1.attn_q.weight`. */
function together(shapes: Readonly<Record<string, readonly number[]>>): Record<string, readonly number[]> {
  const layers = new Map<string, { rest: string; shape: readonly number[]; ids: string[] }>();
  const found: Record<string, readonly number[]> = {};
  for (const [name, shape] of Object.entries(shapes)) {
    const [, id, rest] = /^blk\.(\d+)\.(.+)$/.exec(name) ?? [];
    if (id === undefined || rest === undefined) {
      found[name] = shape;
      continue;
    }
    const key = `${rest} ${shape.join("x")}`;
    const same = layers.get(key) ?? { rest, shape, ids: [] };
    same.ids.push(id);
    layers.set(key, same);
  }
  for (const { rest, shape, ids } of layers.values()) found[`blk.${ids.join(",")}.${rest}`] = shape;
  return found;
}
