/**
 * Qwen2-VL, 2.5-VL and 3-VL: pictures of any size, RoPE by line and column, and four patches per row. 2.5 attends
 * within windows in most layers; 3 adds interpolated positions, and rows of earlier layers (DeepStack). Semantics:
 * tools/mtmd/models/qwen2vl.cpp and qwen3vl.cpp of llama.cpp.
 */
import type { Buf, Step } from "../../program/step.ts";
import { AppError } from "../../../base/index.ts";
import { widthOf, type ClipModel } from "../clip.ts";
import { alignedTaps, blockOrder, MERGED, positionsOf, stretchTable } from "../grid.ts";
import type { Grid, Part, Projector } from "../projector.ts";
import { halves } from "../rotations.ts";
import { buffersOf, inputSteps, layers, norm, patchEmbedding, twoLinears, type NormKind } from "../tower.ts";

/** Rows of a prompt per picture. */
const ROWS = { min: 8, max: 4096 };
/** Pixels of a window of Qwen2.5-VL; the reference ignores the file's key too. */
const WINDOW = 112;

/** The common part of Qwen-VL and GLM-V: patches merged by blocks. */
export function mergedPatches(model: ClipModel) {
  const { patch, keys, path } = model;
  const merged = keys.count("vision.spatial_merge_size", { min: 1, max: 16, fallback: MERGED });
  if (merged !== MERGED) {
    throw new AppError("unsupported", `${path}: 'clip.vision.spatial_merge_size': expected ${MERGED}, got ${merged}`);
  }
  return {
    size: { kind: "dynamic", step: patch * MERGED, ...ROWS },
    filter: "bicubic",
    pad: [0, 0, 0],
    patch,
    rowsMax: ROWS.max * MERGED * MERGED,
    shapeOf: ({ width, height }) => ({ width: width / MERGED, height: height / MERGED }),
  } as const satisfies Partial<Projector>;
}

const around = { before: "<|vision_start|>", after: "<|vision_end|>" };

export function qwen2vl(model: ClipModel): Projector {
  const { pixels, x } = buffersOf(model);
  return {
    ...around,
    ...mergedPatches(model),
    tower: {
      steps: [
        ...inputSteps(pixels),
        ...patchEmbedding(model, { frames: 2 }),
        ...layers(model, { norm: "layer", turn: halves(model), mayBeSwapped: true }),
      ],
      result: x,
    },
    rowsOf(grid) {
      const order = blockOrder(grid);
      return { count: order.length, order, positions: positionsOf(grid, order) };
    },
    merge: (rows) => rows, // the four rows of a block are adjacent
    projection: mergedProjection(model, "layer"),
  };
}

export function qwen25vl(model: ClipModel): Projector {
  const { patch, keys, nLayers, path, dim } = model;
  const { pixels, x } = buffersOf(model);
  const pattern = keys.count("vision.n_wa_pattern", { min: 1, max: Math.max(1, nLayers) });
  const side = Math.floor(Math.floor(WINDOW / patch) / MERGED);
  if (side === 0) {
    const expected = `at most ${WINDOW / MERGED}, two to a window`;
    throw new AppError("bad_file", `${path}: 'clip.vision.patch_size': expected ${expected}, got ${patch}`);
  }
  const inSpans = (layer: number): boolean => (layer + 1) % pattern !== 0;
  return {
    ...around,
    ...mergedPatches(model),
    tower: {
      steps: [
        ...inputSteps(pixels),
        ...patchEmbedding(model, { frames: 2 }),
        ...layers(model, { norm: "rms", turn: halves(model), mayBeSwapped: true, inSpans }),
      ],
      result: x,
    },
    rowsOf(grid) {
      const { cells, spans } = windowsOf(grid, side);
      const blocks = blockOrder(grid);
      const each = MERGED * MERGED;
      const order = new Int32Array(blocks.length);
      for (const [i, cell] of cells.entries()) order.set(blocks.subarray(cell * each, (cell + 1) * each), i * each);
      return { count: order.length, order, positions: positionsOf(grid, order), spans };
    },
    merge(rows, grid) {
      const { cells } = windowsOf(grid, side);
      const wide = dim * MERGED * MERGED;
      const out = new Float32Array(rows.length);
      for (const [i, cell] of cells.entries()) out.set(rows.subarray(i * wide, (i + 1) * wide), cell * wide);
      return out;
    },
    projection: mergedProjection(model, "rms"),
  };
}

/** The merged patches window by window, each in line order; windows at the right and the bottom may be smaller. */
function windowsOf(grid: Grid, side: number): { cells: number[]; spans: { first: number; end: number }[] } {
  const [width, height] = [grid.width / MERGED, grid.height / MERGED];
  const cells: number[] = [];
  const spans: { first: number; end: number }[] = [];
  for (let top = 0; top < height; top += side) {
    for (let left = 0; left < width; left += side) {
      const first = cells.length * MERGED * MERGED;
      for (let y = top; y < Math.min(top + side, height); y++) {
        for (let x = left; x < Math.min(left + side, width); x++) cells.push(y * width + x);
      }
      spans.push({ first, end: cells.length * MERGED * MERGED });
    }
  }
  return { cells, spans };
}

export function qwen3vl(model: ClipModel): Projector {
  const { dim, nLayers } = model;
  const { pixels, x } = buffersOf(model);
  const added = { name: "added", dim };
  const stacked = Array.from({ length: nLayers }, (_, layer) => layer).filter((layer) =>
    model.has(`v.deepstack.${layer}.fc1.weight`),
  );
  const states = (count: number): Buf => ({ name: `states.${count}`, dim: count * dim });
  /** Appends a layer's output to the outputs of the layers before it. */
  const keep = (count: number): Step[] =>
    count === 0
      ? [{ op: "slice", out: states(1), x, heads: 1, at: 0 }]
      : [{ op: "join", out: states(count + 1), a: states(count), b: x, heads: 1 }];
  const after = (layer: number): Step[] => (stacked.includes(layer) ? keep(stacked.indexOf(layer)) : []);
  return {
    ...around,
    ...mergedPatches(model),
    tower: {
      steps: [
        ...inputSteps(pixels, added),
        ...patchEmbedding(model, { frames: 2 }),
        { op: "add", out: x, a: x, b: added, scale: 1 },
        ...layers(model, { norm: "layer", turn: halves(model), after }),
        ...(stacked.length > 0 ? keep(stacked.length) : []),
      ],
      result: stacked.length > 0 ? states(stacked.length + 1) : x,
    },
    rowsOf: stretchedPositions(model),
    merge: (rows) => rows,
    projection: stackedProjection(model, stacked),
  };
}

/** Rows in block order, with the bias and interpolated positions added. */
function stretchedPositions(model: ClipModel): Projector["rowsOf"] {
  const { dim, path } = model;
  const bias = model.bias("v.patch_embd", dim);
  const count = model.rows("v.position_embd") ?? 0;
  const side = Math.round(Math.sqrt(count));
  if (side === 0 || side * side !== count) {
    throw new AppError("bad_file", `${path}: tensor 'v.position_embd.weight': expected a square of rows, got ${count}`);
  }
  const table = model.matrix("v.position_embd", { inDim: dim, outDim: count });
  return (grid) => {
    const order = blockOrder(grid);
    const added = stretchTable(model.floats(table), grid, { side, order, tapsOf: alignedTaps });
    const biases = bias && model.floats(bias);
    if (biases) for (let i = 0; i < added.length; i++) added[i]! += biases[i % dim]!;
    return { count: order.length, order, added, positions: positionsOf(grid, order) };
  };
}

/** Projects four rows, each normed, to one row of the text model. */
function mergedProjection(model: ClipModel, kind: NormKind): Part {
  const { dim } = model;
  const merged = { name: "merged", dim: dim * MERGED * MERGED };
  const projected = { name: "projected", dim: widthOf(model, "mm.2") };
  return {
    steps: [
      { op: "input", out: merged },
      norm(model, kind, { out: merged, x: merged, name: "v.post_ln", len: dim }),
      ...twoLinears(model, ["mm.0", "mm.2"], { out: projected, x: merged, act: "gelu" }),
    ],
    result: projected,
  };
}

/** As `mergedProjection`, followed by the outputs of earlier layers, each projected by its own weights. */
function stackedProjection(model: ClipModel, stacked: readonly number[]): Part {
  const { dim } = model;
  const each = MERGED * MERGED;
  const main = mergedProjection(model, "layer");
  if (stacked.length === 0) return main;
  const width = main.result.dim;
  const given = { name: "given", dim: dim * (stacked.length + 1) * each };
  const merged = { name: "merged", dim: dim * each };
  const part = (index: number): Step => ({ op: "slice", out: merged, x: given, heads: each, at: index * dim });
  const rows = (count: number): Buf => ({ name: `rows.${count}`, dim: count * width });
  const deep = { name: "deep", dim: width };
  const steps = stacked.flatMap((layer, index): Step[] => {
    const name = `v.deepstack.${layer}`;
    const before = index === 0 ? main.result : rows(index + 1);
    return [
      part(index),
      norm(model, "layer", { out: merged, x: merged, name: `${name}.norm` }),
      ...twoLinears(model, [`${name}.fc1`, `${name}.fc2`], { out: deep, x: merged, act: "gelu" }),
      { op: "join", out: rows(index + 2), a: before, b: deep, heads: 1 },
    ];
  });
  return {
    steps: [{ op: "input", out: given }, part(stacked.length), ...main.steps.slice(1), ...steps],
    result: rows(stacked.length + 1),
  };
}
