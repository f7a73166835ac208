/**
 * Llama 3.2 Vision: Llama and gated layers of cross attention, which read an image and do nothing without one.
 * Semantics: model.py of Meta's llama-models (`CrossAttentionTransformerBlock`), modeling_mllama.py of transformers.
 */
import type { MemoryProgram } from "../program/backend.ts";
import type { Step, Weight } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import { attention } from "./attention.ts";
import { decoder, feedForward, normSteps, sequentialBlock } from "./decoder.ts";
import { buffersOf, type Model } from "./model.ts";
import { ropeOf } from "./rope.ts";

export function mllama(model: Model): Step[] {
  const rope = ropeOf(model, { style: "norm" });
  const crosses = crossLayers(model);
  const rows = memoryRows(model);
  return decoder(model, {
    block: (layer) =>
      crosses.has(layer)
        ? crossBlock(model, layer, rows)
        : sequentialBlock(model, layer, {
            attention: attention(model, layer, { rope }),
            ffn: feedForward(model, layer, { act: "silu" }),
          }),
  });
}

/** Keys and values of an image's rows for each layer of cross attention. */
export function mllamaMemory(model: Model): MemoryProgram {
  const { dim, nKvHeads, headDim, eps } = model;
  const x = { name: "memory", dim };
  const k = { name: "memory.k", dim: nKvHeads * headDim };
  const v = { name: "memory.v", dim: k.dim };
  const steps = [...crossLayers(model)].flatMap((layer): Step[] => {
    const project = (name: string): Weight =>
      model.matrix(`blk.${layer}.cross_attn_${name}_proj`, { inDim: dim, outDim: k.dim });
    return [
      { op: "linear", out: k, x, w: project("k") },
      { op: "linear", out: v, x, w: project("v") },
      { op: "rmsNorm", out: k, x: k, w: model.vector(`blk.${layer}.cross_attn_k_norm`, headDim), eps },
      { op: "remember", k, v, layer, nKvHeads, headDim },
    ];
  });
  return { steps: [{ op: "input", out: x }, ...steps], rows: memoryRows(model) };
}

/** x += tanh(gate) · attention(norm(x)); x += tanh(gate) · mlp(norm(x)), for rows that have an image. */
function crossBlock(model: Model, layer: number, rows: number): Step[] {
  const { dim, nHeads, nKvHeads, headDim, eps } = model;
  const { x, h, q, heads, y } = buffersOf(model);
  const blk = `blk.${layer}`;
  const matrix = (name: string, inDim: number, outDim: number): Weight =>
    model.matrix(`${blk}.cross_attn_${name}_proj`, { inDim, outDim });
  const join = (gate: string): Step => {
    return { op: "add", out: x, a: x, b: y, scale: Math.tanh(model.scalar(`${blk}.cross_attn_${gate}_gate`)) };
  };
  return [
    ...normSteps(model, "rms", { out: h, x, name: `${blk}.attn_norm` }),
    { op: "linear", out: q, x: h, w: matrix("q", dim, q.dim) },
    { op: "rmsNorm", out: q, x: q, w: model.vector(`${blk}.cross_attn_q_norm`, headDim), eps },
    { op: "crossAttention", out: heads, q, layer, nHeads, nKvHeads, headDim, scale: 1 / Math.sqrt(headDim), rows },
    { op: "linear", out: y, x: heads, w: matrix("o", heads.dim, dim) },
    join("attn"),
    ...normSteps(model, "rms", { out: h, x, name: `${blk}.ffn_norm` }),
    ...feedForward(model, layer, { act: "silu" }),
    { op: "keepRemembering", x: y },
    join("mlp"),
  ];
}

/** Limits of an image's tiles and side: far above the values of published models. */
const [TILES_MAX, SIDE_MAX] = [64, 4096];

/** Maximum rows of an image: its tiles' patches, and one more row for each tile. */
function memoryRows({ keys }: Model): number {
  const tiles = keys.count("vision.max_num_tiles", { min: 1, max: TILES_MAX, fallback: 4 });
  const side = keys.count("vision.image_size", { min: 1, max: SIDE_MAX, fallback: 560 });
  const patch = keys.count("vision.patch_size", { min: 1, max: side, fallback: 14 });
  return tiles * (Math.floor(side / patch) ** 2 + 1);
}

/** The layers of cross attention, by the file's list of them. */
function crossLayers({ keys, nLayers, path }: Model): ReadonlySet<number> {
  const key = "attention.cross_attention_layers";
  const layers = keys.find(key);
  const isLayer = (each: unknown): each is number =>
    Number.isSafeInteger(each) && Number(each) >= 0 && Number(each) < nLayers;
  const listed = typeof layers === "object" ? Array.from(layers as ArrayLike<unknown>) : [];
  if (listed.length > 0 && listed.length < nLayers && listed.every(isLayer)) return new Set(listed);
  const got = typeof layers === "object" ? `${listed.length} numbers` : String(layers);
  throw new AppError(
    "bad_file",
    `${path}: '${keys.arch}.${key}': expected numbers of some of ${nLayers} layers, got ${got}`,
  );
}
