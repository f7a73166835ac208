/**
 * Gemma 4: pictures of any size with learned positions of lines and of columns. `gemma4v` is a transformer with RoPE,
 * pooled three by three; `gemma4uv` has no layers, only norms around a projection of large patches. Semantics:
 * tools/mtmd/models/gemma4v.cpp and gemma4uv.cpp of llama.cpp.
 */
import type { Step } from "../../program/step.ts";
import { AppError } from "../../../base/index.ts";
import { widthOf, type ClipModel } from "../clip.ts";
import { pool, positionsOf } from "../grid.ts";
import type { Grid, Projector } from "../projector.ts";
import { halvesOfHeads } from "../rotations.ts";
import { buffersOf, inputSteps, layers, norm, patchEmbedding, project } from "../tower.ts";

const ROWS = { min: 70, max: 1120 };
const SIDE_MAX = 16;
const TABLE_MAX = 65_536;
const ROPE_BASE = 100;
/** Epsilon of the norms of `gemma4uv`; files have another. */
const PATCH_EPS = 1e-5;
/**
 * Text models that read the parts of an image causally: E2B and E4B, recognised by their width because no key
 * identifies them.
 */
const ONE_WAY_DIMS: ReadonlySet<number> = new Set([1536, 2560]);

const around = { before: "<|image>", after: "<image|>" };

export function gemma4v(model: ClipModel): Projector {
  const { dim, eps, headDim } = model;
  const { pixels, x, v } = buffersOf(model);
  const side = sideOf(model);
  const width = widthOf(model, "mm.input_projection");
  const added = { name: "added", dim };
  const [pooled, projected] = [
    { name: "pooled", dim },
    { name: "projected", dim: width },
  ];
  const moments = momentsOf(model);
  const tableOf = positionTables(model);
  return {
    ...around,
    ...pictures(model, side),
    twoWayRows: ONE_WAY_DIMS.has(width) ? 0 : ROWS.max,
    patch: model.patch,
    isSigned: true,
    tower: {
      steps: [
        ...inputSteps(pixels, added),
        ...patchEmbedding(model),
        { op: "add", out: x, a: x, b: added, scale: 1 },
        ...layers(model, {
          norm: "rms",
          turn: halvesOfHeads(model, ROPE_BASE),
          values: [{ op: "bareRmsNorm", out: v, x: v, run: headDim, eps }],
          scale: 1,
        }),
      ],
      result: x,
    },
    rowsMax: ROWS.max * side * side,
    rowsOf: (grid) => ({ count: grid.width * grid.height, added: tableOf(grid), positions: positionsOf(grid) }),
    merge(rows, grid) {
      const out = pool(rows, grid, side);
      const factor = Math.sqrt(dim);
      for (let i = 0; i < out.length; i++) {
        const value = out[i]! * factor;
        out[i] = moments ? (value - moments.bias[i % dim]!) * moments.scale[i % dim]! : value;
      }
      return out;
    },
    projection: {
      steps: [
        { op: "input", out: pooled },
        { op: "bareRmsNorm", out: pooled, x: pooled, run: dim, eps },
        ...project(model, "mm.input_projection", { out: projected, x: pooled }),
      ],
      result: projected,
    },
    shapeOf: ({ width: across, height: down }) => ({
      width: Math.floor(across / side),
      height: Math.floor(down / side),
    }),
  };
}

export function gemma4uv(model: ClipModel): Projector {
  const { dim, eps } = model;
  const side = sideOf(model);
  const patch = model.patch * side;
  const [pixels, added, x] = [
    { name: "pixels", dim: 3 * patch * patch },
    { name: "added", dim },
    { name: "x", dim },
  ];
  const projected = { name: "projected", dim: widthOf(model, "mm.input_projection") };
  const tableOf = positionTables(model);
  const steps: Step[] = [
    ...inputSteps(pixels, added),
    norm(model, "layer", { out: pixels, x: pixels, name: "v.patch_norm.1", eps: PATCH_EPS }),
    ...project(model, "v.patch_embd", { out: x, x: pixels }),
    norm(model, "layer", { out: x, x, name: "v.patch_norm.2", eps: PATCH_EPS }),
    { op: "add", out: x, a: x, b: added, scale: 1 },
    norm(model, "layer", { out: x, x, name: "v.patch_norm.3", eps: PATCH_EPS }),
    { op: "bareRmsNorm", out: x, x, run: dim, eps },
    ...project(model, "mm.input_projection", { out: projected, x }),
  ];
  return {
    ...around,
    ...pictures(model, side),
    twoWayRows: ROWS.max,
    patch,
    tower: { steps, result: projected },
    rowsMax: ROWS.max,
    rowsOf: (grid) => ({ count: grid.width * grid.height, added: tableOf(grid) }),
    merge: (rows) => rows,
    shapeOf: (grid) => grid,
  };
}

/** Patches per side that become one row. */
const sideOf = ({ keys }: ClipModel): number =>
  keys.count("vision.projector.scale_factor", { min: 1, max: SIDE_MAX, fallback: 3 });

const pictures = ({ patch }: ClipModel, side: number) =>
  ({
    size: { kind: "dynamic", step: patch * side, ...ROWS },
    filter: "bicubic",
    pad: [0, 0, 0],
  }) as const;

/** The offset and the scale for pooled rows, if the file has both. */
function momentsOf(model: ClipModel): { bias: Float32Array; scale: Float32Array } | undefined {
  if (!model.has("v.std_bias") || !model.has("v.std_scale")) return undefined;
  const read = (name: string): Float32Array => model.floats(model.plain(name, { inDim: model.dim, outDim: 1 }));
  return { bias: read("v.std_bias"), scale: read("v.std_scale") };
}

/**
 * Position vectors for the patches of a grid: the column's row of the first table plus the line's row of the second.
 */
function positionTables(model: ClipModel): (grid: Grid) => Float32Array {
  const { dim, path } = model;
  const count = model.rows("v.position_embd") ?? 0;
  if (count === 0 || count > TABLE_MAX) {
    const expected = `two tables of at most ${TABLE_MAX} rows`;
    throw new AppError("bad_file", `${path}: tensor 'v.position_embd.weight': expected ${expected}, got ${count}`);
  }
  const tables = model.matrix("v.position_embd", { inDim: dim, outDim: count, experts: 2 });
  return ({ width, height }) => {
    if (Math.max(width, height) > count) {
      const got = `image of ${width} × ${height} patches`;
      throw new AppError(
        "bad_request",
        `${got}: expected at most ${count} to a side, for which '${path}' has positions`,
      );
    }
    const columns = model.floats(tables, { first: 0, count: width });
    const lines = model.floats(tables, { first: count, count: height });
    const out = new Float32Array(width * height * dim);
    for (let y = 0, at = 0; y < height; y++) {
      for (let x = 0; x < width; x++)
        for (let i = 0; i < dim; i++) out[at++] = columns[x * dim + i]! + lines[y * dim + i]!;
    }
    return out;
  };
}
