/**
 * Llama 3.2 Vision: the tiles of a canvas in one sequence, with rows of padding, through layers of which some states
 * are kept, and through gated layers after them. Its rows are a memory for cross attention. Semantics: `VisionEncoder`
 * of Meta's llama-models (model.py), `MllamaVisionModel` of transformers; file: convert_mllama.go of ollama.
 */
import type { Buf, Step } from "../../program/step.ts";
import { AppError } from "../../../base/index.ts";
import { canvasesOf, onCanvas } from "../canvas.ts";
import { widthOf, type ClipModel } from "../clip.ts";
import type { Projector, TowerRows } from "../projector.ts";
import { buffersOf, layers, norm, patchEmbedding, project } from "../tower.ts";
import { fixedGrid } from "./learned-positions.ts";

const LAYERS_MAX = 256;
const TILES_MAX = 64;
/** Four times the rows of the published encoder: 4 tiles of 1,608. */
const ROWS_MAX = 25_728;
/** The rows of a tile are padded to a multiple. */
const ROW_MULTIPLE = 8;

/** Rows of the tower. */
interface Sizes {
  readonly tilesMax: number;
  /** Patches across and down a tile. */
  readonly side: number;
  /** Rows of a tile: its class and its patches. */
  readonly tileRows: number;
  /** The same with padding. */
  readonly padded: number;
}

export function mllama(model: ClipModel): Projector {
  const { patch, imageSize: tile, keys } = model;
  keys.count("vision.num_channels", { min: 3, max: 3, fallback: 3 });
  const sizes = sizesOf(model);
  const rule = { tile, tilesMax: sizes.tilesMax };
  const { tileRows, side } = sizes;
  return {
    before: "",
    after: "",
    isMemory: true,
    size: { kind: "fixed", side: tile },
    filter: "bilinear",
    pad: [0, 0, 0],
    patch,
    tiling: {
      partsOf: () => ["picture"],
      *picturesOf(image) {
        return [yield* onCanvas(image, rule)];
      },
    },
    tower: towerOf({ ...model, act: "gelu_erf" }),
    rowsMax: sizes.tilesMax * sizes.padded,
    rowsOf: rowsOf(model, sizes),
    merge: (rows, { width, height }) => {
      const used = ((width * height) / side ** 2) * tileRows;
      return rows.subarray(0, (used / (sizes.tilesMax * sizes.padded)) * rows.length);
    },
    shapeOf: () => ({ width: 1, height: 1 }),
  };
}

function sizesOf(model: ClipModel): Sizes {
  const { keys, path } = model;
  const { width: side } = fixedGrid(model);
  const tilesMax = keys.count("vision.max_num_tiles", { min: 1, max: TILES_MAX });
  const tileRows = side * side + 1;
  const padded = Math.ceil(tileRows / ROW_MULTIPLE) * ROW_MULTIPLE;
  if (tilesMax * padded <= ROWS_MAX) return { tilesMax, side, tileRows, padded };
  const expected = `tiles of ${padded} rows, together at most ${ROWS_MAX}`;
  throw new AppError("bad_file", `${path}: 'clip.vision.max_num_tiles': expected ${expected}, got ${tilesMax} tiles`);
}

/**
 * The input of a row: its pixels, the values that are added before the layers and before the gated layers, and a
 * factor: 0 makes rows of padding zero after the first norm, all other rows have 1. The states that enter some layers
 * are interleaved value by value, after the last state.
 */
function towerOf(model: ClipModel): Projector["tower"] {
  const { dim } = model;
  const { pixels, x, y } = buffersOf(model);
  const given = { name: "given", dim: pixels.dim + 2 * dim + 1 };
  const mask = { name: "mask", dim: 1 };
  const part = (out: Buf, at: number): Step => ({ op: "slice", out, x: given, heads: 1, at });
  const addPart = (at: number): Step[] => [part(y, at), { op: "add", out: x, a: x, b: y, scale: 1 }];
  const kept = keptLayers(model);
  const states = (count: number): Buf => ({ name: `states.${count}`, dim: count * dim });
  const keep = (layer: number): Step[] => {
    const count = kept.indexOf(layer);
    if (count < 0) return [];
    if (count === 0) return [{ op: "slice", out: states(1), x, heads: 1, at: 0 }];
    return [{ op: "join", out: states(count + 1), a: states(count), b: x, heads: dim }];
  };
  const all = { name: "all", dim: (kept.length + 1) * dim };
  const joined: Step[] = kept.length === 0 ? [] : [{ op: "join", out: all, a: x, b: states(kept.length), heads: 1 }];
  const nLayers = model.keys.count("vision.global.block_count", { min: 0, max: LAYERS_MAX });
  const result = { name: "projected", dim: widthOf(model, "mm.0") };
  return {
    steps: [
      { op: "input", out: given },
      part(pixels, 0),
      part(mask, given.dim - 1),
      ...patchEmbedding(model),
      ...addPart(pixels.dim),
      norm(model, "layer", { out: x, x, name: "v.pre_ln" }),
      { op: "multiply", out: x, a: x, b: mask },
      ...keep(0),
      ...layers(model, {
        norm: "layer",
        mayBeSwapped: true,
        inSpans: () => true,
        after: (layer) => keep(layer + 1),
      }),
      norm(model, "layer", { out: x, x, name: "v.post_ln" }),
      ...addPart(pixels.dim + dim),
      ...layers(
        { ...model, prefix: "v.global", nLayers },
        { norm: "layer", mayBeSwapped: true, inSpans: () => true, isGated: true },
      ),
      ...joined,
      ...project(model, "mm.0", { out: result, x: kept.length === 0 ? x : all }),
    ],
    result,
  };
}

/** The layers whose inputs are kept. */
function keptLayers({ keys, nLayers, path }: ClipModel): readonly number[] {
  const key = "vision.intermediate_layers_indices";
  const stored = keys.find(key);
  const listed = typeof stored === "object" ? Array.from(stored as ArrayLike<unknown>, Number) : [];
  const follows = (layer: number, i: number): boolean =>
    Number.isInteger(layer) && layer < nLayers && layer > (i === 0 ? -1 : listed[i - 1]!);
  if (typeof stored === "object" && listed.every(follows)) return listed;
  const got = typeof stored === "object" ? `[${listed.slice(0, 16).join(", ")}]` : String(stored);
  const expected = `ascending numbers of some of ${nLayers} layers`;
  throw new AppError("bad_file", `${path}: 'clip.${key}': expected ${expected}, got ${got}`);
}

/**
 * The rows of the used tiles, then padding: the ends of tiles, and whole tiles without pixels. Padding attends to used
 * rows only, used rows to all.
 */
function rowsOf(model: ClipModel, { tilesMax, side, tileRows, padded }: Sizes): Projector["rowsOf"] {
  const { dim } = model;
  const canvases = canvasesOf(tilesMax);
  const ids = canvases.length + 1;
  const matrix = (name: string, inDim: number, outDim: number) => model.matrix(`v.${name}`, { inDim, outDim });
  const tables = {
    pre: matrix("pre_tile_position_embd", tilesMax * dim, ids),
    post: matrix("post_tile_position_embd", tilesMax * dim, ids),
    tile: matrix("tile_position_embd", tilesMax * tileRows * dim, ids),
    place: matrix("position_embd", dim, tileRows),
    first: model.plain("v.class_embd", { inDim: dim, outDim: 1 }),
  };
  const gate = (name: string): number => model.scalar(`v.${name}.gate`);
  const gates = {
    pre: gate("pre_tile_position_embd"),
    post: gate("post_tile_position_embd"),
    tile: gate("tile_position_embd"),
    place: gate("position_embd"),
  };
  const stride = 2 * dim + 1;
  return (grid): TowerRows => {
    const across = grid.width / side;
    const down = grid.height / side;
    const used = across * down;
    const canvas = canvases.findIndex(({ width, height }) => width === across && height === down);
    const own = (name: "pre" | "post" | "tile"): Float32Array =>
      model.floats(tables[name], { first: canvas + 1, count: 1 }); // the first row is of no image
    const [pre, post, tile] = [own("pre"), own("post"), own("tile")];
    const [place, first] = [model.floats(tables.place), model.floats(tables.first)];
    const count = tilesMax * padded;
    const order = new Int32Array(count).fill(-1);
    const added = new Float32Array(count * stride);
    /** @param row of the tile; from `tileRows` on its padding */
    const fill = (at: number, of: number, row: number): void => {
      const to = at * stride;
      for (let i = 0; i < dim; i++) added[to + dim + i] = gates.post * post[of * dim + i]!;
      if (row >= tileRows) return;
      added[to + 2 * dim] = 1;
      for (let i = 0; i < dim; i++) {
        const start = row === 0 ? first[i]! : gates.pre * pre[of * dim + i]!;
        const position = gates.place * place[row * dim + i]!;
        added[to + i] = start + position + gates.tile * tile[(of * tileRows + row) * dim + i]!;
      }
      if (of >= used || row === 0) return;
      const [line, column] = [Math.floor((row - 1) / side), (row - 1) % side];
      order[at] = (Math.floor(of / across) * side + line) * grid.width + (of % across) * side + column;
    };
    let at = 0;
    for (let of = 0; of < used; of++) for (let row = 0; row < tileRows; row++) fill(at++, of, row);
    const real = at;
    for (let of = 0; of < tilesMax; of++) {
      for (let row = of < used ? tileRows : 0; row < padded; row++) fill(at++, of, row);
    }
    const spans = [
      { first: 0, end: real, seen: { first: 0, end: count } },
      { first: real, end: count, seen: { first: 0, end: real } },
    ];
    return { count, order, added, spans: spans.filter(({ first: from, end }) => from < end) };
  };
}
