/**
 * LLaVA and relatives: CLIP over pictures of a fixed size with a class token first, whose row is dropped at the end,
 * and an MLP. Follows the training code: llama.cpp puts the token last and omits a layer (issues 25814 and 25817).
 * LLaVA 1.6 also cuts large images into tiles. Semantics: tools/mtmd/models/llava.cpp.
 */
import type { Step } from "../../program/step.ts";
import { AppError } from "../../../base/index.ts";
import { widthOf, type ClipModel } from "../clip.ts";
import type { Part, Projector } from "../projector.ts";
import { bestOfSizes, readSizes } from "../tiles.ts";
import { buffersOf, layers, norm, project, twoLinears } from "../tower.ts";
import { fixedGrid, positioned, withPositions } from "./learned-positions.ts";

/** The mean colour of CLIP. */
const PAD = [122, 116, 104] as const;
const CLASS = "v.class_embd";
const GRID = "vision.image_grid_pinpoints";
/** Maximum tiles of an image and number of image sizes; LLaVA 1.6 has five sizes of at most four tiles. */
const TILES_MAX = 64;
const SIZES_MAX = 256;

export function mlp(model: ClipModel): Projector {
  const { dim, imageSize, patch } = model;
  const { x } = buffersOf(model);
  const grid = fixedGrid(model);
  const first = model.has(CLASS) ? model.plain(CLASS, { inDim: dim, outDim: 1 }) : undefined;
  const normed = (name: string): Step[] =>
    model.has(`${name}.weight`) ? [norm(model, "layer", { out: x, x, name })] : [];
  return {
    before: "",
    after: "",
    size: { kind: "fixed", side: imageSize },
    filter: "bicubic",
    pad: PAD,
    patch,
    ...tilingOf(model),
    tower: {
      steps: [
        ...positioned(model),
        ...normed("v.pre_ln"),
        ...layers(model, { norm: "layer", mayBeSwapped: true }),
        ...normed("v.post_ln"),
      ],
      result: x,
    },
    rowsMax: grid.width * grid.height + (first ? 1 : 0),
    rowsOf: withPositions(model, grid, first),
    merge: (rows) => (first ? rows.subarray(dim) : rows),
    projection: projectionOf(model),
    shapeOf: (size) => size,
  };
}

/** The tiling of LLaVA 1.6, whose files list the allowed image sizes. */
function tilingOf({ keys, imageSize: tile, path }: ClipModel): Pick<Projector, "tiling"> {
  const stored = keys.find(GRID);
  const list = typeof stored === "object" ? Array.from(stored as ArrayLike<unknown>, Number) : [];
  if (list.length < 2) return {};
  const sizes = readSizes(list.slice(0, 2 * SIZES_MAX), { tile, most: TILES_MAX });
  if (typeof sizes !== "string") return { tiling: bestOfSizes(sizes, tile) };
  const expected = `multiples of ${tile} with at most ${TILES_MAX} tiles`;
  throw new AppError("bad_file", `${path}: 'clip.${GRID}': expected ${expected}, got ${sizes}`);
}

/** One linear step, two with an activation between them, or (Yi-VL) two with a norm after each. */
function projectionOf(model: ClipModel): Part {
  const given = { name: "given", dim: model.dim };
  const input: Step = { op: "input", out: given };
  if (model.has("mm.3.weight")) {
    const inner = { name: "inner", dim: widthOf(model, "mm.0") };
    const projected = { name: "projected", dim: widthOf(model, "mm.3") };
    const steps: Step[] = [
      input,
      ...project(model, "mm.0", { out: inner, x: given }),
      norm(model, "layer", { out: inner, x: inner, name: "mm.1" }),
      { op: "activate", x: inner, act: "gelu" },
      ...project(model, "mm.3", { out: projected, x: inner }),
      norm(model, "layer", { out: projected, x: projected, name: "mm.4" }),
    ];
    return { steps, result: projected };
  }
  const isOne = !model.has("mm.2.weight");
  const projected = { name: "projected", dim: widthOf(model, isOne ? "mm.0" : "mm.2") };
  const linears = isOne
    ? project(model, "mm.0", { out: projected, x: given })
    : twoLinears(model, ["mm.0", "mm.2"], { out: projected, x: given, act: "gelu" });
  return { steps: [input, ...linears], result: projected };
}
