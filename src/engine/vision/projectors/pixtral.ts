/**
 * Pixtral and Mistral Small 3: pictures of any size, RoPE by line and column, and a break row after each line except
 * the last. Semantics: tools/mtmd/models/pixtral.cpp of llama.cpp.
 */
import type { Buf, Step } from "../../program/step.ts";
import { widthOf, type ClipModel } from "../clip.ts";
import { positionsOf, squares } from "../grid.ts";
import type { Grid, Projector } from "../projector.ts";
import { interleaved } from "../rotations.ts";
import { buffersOf, inputSteps, layers, norm, patchEmbedding, project, twoLinears } from "../tower.ts";

const ROWS = { min: 8, max: 1024 };
const SIDE_MAX = 16;
const BREAK = "v.token_embd.img_break";

export function pixtral(model: ClipModel): Projector {
  const { dim, patch, keys } = model;
  const { pixels, x } = buffersOf(model);
  const side = keys.count("vision.spatial_merge_size", { min: 1, max: SIDE_MAX, fallback: 1 });
  const merges = model.has("mm.patch_merger.weight");
  const width = widthOf(model, "mm.2");
  const shapeOf = (grid: Grid): Grid =>
    merges ? { width: grid.width / side, height: grid.height / side } : { width: grid.width, height: grid.height };
  const end = model.has(BREAK) ? model.plain(BREAK, { inDim: width, outDim: 1 }) : undefined;
  const [merged, joined] = [
    { name: "merged", dim: merges ? dim * side * side : dim },
    { name: "joined", dim },
  ];
  const projected: Buf = { name: "projected", dim: width };
  const projection: Step[] = [
    { op: "input", out: merged },
    ...(merges ? project(model, "mm.patch_merger", { out: joined, x: merged }) : []),
    ...twoLinears(model, ["mm.1", "mm.2"], { out: projected, x: merges ? joined : merged, act: "gelu" }),
  ];
  return {
    before: "",
    after: "[IMG_END]",
    size: { kind: "dynamic", step: patch * side, ...ROWS },
    filter: "bicubic",
    pad: [0, 0, 0],
    patch,
    tower: {
      steps: [
        ...inputSteps(pixels),
        ...patchEmbedding(model),
        norm(model, "rms", { out: x, x, name: "v.pre_ln" }),
        ...layers(model, { norm: "rms", turn: interleaved(model) }),
        ...(merges ? [norm(model, "rms", { out: x, x, name: "mm.input_norm" })] : []),
      ],
      result: x,
    },
    rowsMax: ROWS.max * side * side,
    rowsOf: (grid) => ({ count: grid.width * grid.height, positions: positionsOf(grid) }),
    merge: (rows, grid) => (merges ? squares(rows, grid, { side, byChannel: true }) : rows),
    projection: { steps: projection, result: projected },
    shapeOf,
    count(grid) {
      const shape = shapeOf(grid);
      return shape.width * shape.height + (end ? shape.height - 1 : 0);
    },
    finish: (rows, grid) => (end ? withBreaks(rows, shapeOf(grid), model.floats(end)) : rows.slice()),
  };
}

/** Inserts the break row between lines. */
function withBreaks(rows: Float32Array, { width, height }: Grid, end: Float32Array): Float32Array {
  const line = width * end.length;
  const out = new Float32Array(rows.length + (height - 1) * end.length);
  for (let y = 0; y < height; y++) {
    const at = y * (line + end.length);
    out.set(rows.subarray(y * line, (y + 1) * line), at);
    if (y < height - 1) out.set(end, at + line);
  }
  return out;
}
