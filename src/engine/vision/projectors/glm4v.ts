/**
 * GLM-4V and GLM-OCR: like Qwen-VL, except for norms, the interpolation of positions, and a merger that is a
 * convolution and a gated MLP. Semantics: tools/mtmd/models/glm4v.cpp of llama.cpp.
 */
import type { Step } from "../../program/step.ts";
import { AppError } from "../../../base/index.ts";
import { widthOf, type ClipModel } from "../clip.ts";
import { blockOrder, cubicTaps, MERGED, positionsOf, stretchTable } from "../grid.ts";
import type { Part, Projector } from "../projector.ts";
import { halves } from "../rotations.ts";
import { buffersOf, inputSteps, layers, norm, patchEmbedding, project } from "../tower.ts";
import { mergedPatches } from "./qwen.ts";

/** Epsilon of the merger's norm; files have another. */
const MERGER_EPS = 1e-5;

export function glm4v(model: ClipModel): Projector {
  const { dim } = model;
  const { pixels, x } = buffersOf(model);
  const added = { name: "added", dim };
  const bias = model.bias("v.patch_embd", dim);
  const table = tableOf(model);
  return {
    before: "<|begin_of_image|>",
    after: "<|end_of_image|>",
    ...mergedPatches(model),
    tower: {
      steps: [
        ...inputSteps(pixels, table && added),
        ...patchEmbedding(model, { frames: 2 }),
        ...(bias ? [{ op: "addVector", x, w: bias } as const] : []),
        norm(model, "rms", { out: x, x, name: "v.norm_embd" }),
        ...(table ? [{ op: "add", out: x, a: x, b: added, scale: 1 } as const] : []),
        ...layers(model, { norm: "rms", turn: halves(model) }),
        norm(model, "rms", { out: x, x, name: "v.post_ln" }),
      ],
      result: x,
    },
    rowsOf(grid) {
      const order = blockOrder(grid);
      const own = table && stretchTable(model.floats(table.weight), grid, { ...table, order, tapsOf: cubicTaps });
      return { count: order.length, order, positions: positionsOf(grid, order), ...(own && { added: own }) };
    },
    merge: (rows) => byChannel(rows, dim),
    projection: merger(model),
  };
}

function tableOf(model: ClipModel) {
  const count = model.rows("v.position_embd");
  if (count === undefined) return undefined;
  const side = Math.round(Math.sqrt(count));
  if (side * side === count)
    return { weight: model.matrix("v.position_embd", { inDim: model.dim, outDim: count }), side };
  const expected = "expected a square of rows";
  throw new AppError("bad_file", `${model.path}: tensor 'v.position_embd.weight': ${expected}, got ${count}`);
}

/** Four adjacent rows as one, channel by channel, as in a convolution kernel. */
function byChannel(rows: Float32Array, dim: number): Float32Array {
  const each = MERGED * MERGED;
  const out = new Float32Array(rows.length);
  for (let i = 0; i < rows.length; i++) {
    const [row, channel] = [Math.floor(i / dim), i % dim];
    out[Math.floor(row / each) * each * dim + channel * each + (row % each)] = rows[i]!;
  }
  return out;
}

/** A convolution of two by two, a linear step with its norm, a gated MLP. */
function merger(model: ClipModel): Part {
  const { dim } = model;
  const inner = model.shape("mm.patch_merger")?.[3] ?? dim;
  const merged = { name: "merged", dim: dim * MERGED * MERGED };
  const [convolved, normed, up, gate] = [
    { name: "convolved", dim: inner },
    { name: "normed", dim: widthOf(model, "mm.model.fc") },
    { name: "up", dim: model.rows("mm.up") ?? dim },
    { name: "gate", dim: model.rows("mm.gate") ?? dim },
  ];
  const projected = { name: "projected", dim: widthOf(model, "mm.down") };
  const kernel = model.kernel("mm.patch_merger.weight", [MERGED, MERGED, dim, inner]);
  const bias = model.bias("mm.patch_merger", inner);
  const steps: Step[] = [
    { op: "input", out: merged },
    { op: "linear", out: convolved, x: merged, w: kernel, ...(bias && { b: bias }) },
    ...project(model, "mm.model.fc", { out: normed, x: convolved }),
    norm(model, "layer", { out: normed, x: normed, name: "mm.post_norm", eps: MERGER_EPS }),
    { op: "activate", x: normed, act: "gelu_erf" },
    ...project(model, "mm.up", { out: up, x: normed }),
    ...project(model, "mm.gate", { out: gate, x: normed }),
    { op: "multiply", out: up, a: up, b: gate, act: "silu" },
    ...project(model, "mm.down", { out: projected, x: up }),
  ];
  return { steps, result: projected };
}
