/**
 * Gemma 3: SigLIP over pictures of a fixed size with learned positions; its rows are pooled, normed and projected by a
 * transposed matrix. Semantics: tools/mtmd/models/siglip.cpp of llama.cpp.
 */
import type { Step } from "../../program/step.ts";
import { AppError } from "../../../base/index.ts";
import { widthOf, type ClipModel } from "../clip.ts";
import { pool } from "../grid.ts";
import type { Projector } from "../projector.ts";
import { fixedGrid, siglip } from "./learned-positions.ts";

const SIDE_MAX = 16;

export function gemma3(model: ClipModel): Projector {
  const { dim, eps, keys, path } = model;
  const side = keys.count("vision.projector.scale_factor", { min: 1, max: SIDE_MAX, fallback: 4 });
  const grid = fixedGrid(model);
  if (side > grid.width) {
    const expected = `at most ${grid.width} patches to a side`;
    throw new AppError("bad_file", `${path}: 'clip.vision.projector.scale_factor': expected ${expected}, got ${side}`);
  }
  const [pooled, projected] = [
    { name: "pooled", dim },
    { name: "projected", dim: widthOf(model, "mm.input_projection", 0) },
  ];
  const steps: Step[] = [
    { op: "input", out: pooled },
    { op: "rmsNorm", out: pooled, x: pooled, w: model.vector("mm.soft_emb_norm", dim), eps },
    {
      op: "headLinear",
      out: projected,
      x: pooled,
      w: model.matrix("mm.input_projection", { inDim: projected.dim, outDim: dim }),
      transposed: true,
    },
  ];
  return {
    before: "<start_of_image>",
    after: "<end_of_image>",
    twoWayRows: Math.floor(grid.width / side) * Math.floor(grid.height / side),
    ...siglip(model, grid),
    filter: "bilinear",
    merge: (rows, grid) => pool(rows, grid, side),
    projection: { steps, result: projected },
    shapeOf: ({ width, height }) => ({ width: Math.floor(width / side), height: Math.floor(height / side) }),
  };
}
