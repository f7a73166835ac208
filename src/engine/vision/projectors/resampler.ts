/**
 * MiniCPM-V: SigLIP over an image and slices of it that keep its proportions; then learned queries attend to the
 * patches of each, and their outputs are its rows. Semantics: `clip_graph_minicpmv` of llama.cpp
 * (tools/mtmd/models/minicpmv.cpp).
 */
import type { Step } from "../../program/step.ts";
import { AppError } from "../../../base/index.ts";
import type { ClipModel } from "../clip.ts";
import { widthOf } from "../clip.ts";
import type { Grid, Part, Projector, TilePart, Tiling } from "../projector.ts";
import { cutOf, slicesOf, type SliceRule } from "../slices.ts";
import { buffersOf, inputSteps, layers, norm, patchEmbedding, project } from "../tower.ts";

/** Learned positions per side, for any image size. */
const GRID_SIDE = 70;
/** Head size of the queries' attention; no key has it. */
const HEAD_DIM = 128;
const BASE = 10_000;
const QUERIES_MAX = 1024;
/** Four times the patches of a slice of published models. */
const PATCHES_MAX = 4096;
/** Version 2 (MiniCPM-V 2.5) puts an image mark around each slice, later versions a slice mark. */
const VERSIONS: ReadonlySet<number> = new Set([2, 3, 4, 5, 6, 100_045]);
const QUERIES_OF_2 = 96;
const QUERIES = 64;

export function resampler(model: ClipModel): Projector {
  const { patch, imageSize, keys, path } = model;
  const { pixels, x } = buffersOf(model);
  const version = keys.count("minicpmv_version", { min: 0, max: 1_000_000, fallback: 2 }) || 2;
  if (!VERSIONS.has(version)) {
    const expected = `one of ${[...VERSIONS].join(", ")}`;
    throw new AppError("unsupported", `${path}: 'clip.minicpmv_version': expected ${expected}, got ${version}`);
  }
  const fallback = version === 2 ? QUERIES_OF_2 : QUERIES;
  const queries = keys.count("minicpmv_query_num", { min: 0, max: QUERIES_MAX, fallback }) || fallback;
  const rule = { side: imageSize, patch, patchesMax: PATCHES_MAX };
  const normed = (name: string): Step[] =>
    model.has(`${name}.weight`) ? [norm(model, "layer", { out: x, x, name })] : [];
  return {
    before: "",
    after: "",
    size: { kind: "fixed", side: imageSize },
    filter: "bicubic",
    pad: [0, 0, 0],
    patch,
    tiling: tilingOf(rule, version),
    tower: {
      steps: [
        ...inputSteps(pixels, { name: "added", dim: model.dim }),
        ...patchEmbedding(model),
        { op: "add", out: x, a: x, b: { name: "added", dim: model.dim }, scale: 1 },
        ...normed("v.pre_ln"),
        ...layers(model, { norm: "layer", mayBeSwapped: true }),
        ...normed("v.post_ln"),
      ],
      result: x,
    },
    rowsMax: PATCHES_MAX + QUERIES_MAX,
    rowsOf: positionsOf(model),
    ...lookingOn(model, queries),
    shapeOf: () => ({ width: queries, height: 1 }),
  };
}

/** The whole image first; then its slices, if any, with a line feed after each line except the last. */
function tilingOf(rule: SliceRule, version: number): Tiling {
  const isFirst = version === 2;
  const [begin, end] = isFirst ? ["<image>", "</image>"] : ["<slice>", "</slice>"];
  const around = (marks: TilePart[], parts: TilePart[]): TilePart[] =>
    isFirst ? [marks[0]!, ...parts, marks[1]!] : parts;
  return {
    partsOf(size) {
      const { grid } = cutOf(size, rule);
      const parts = Array.from({ length: grid.width * grid.height }, (_, i): TilePart[] => {
        const endsLine = (i + 1) % grid.width === 0 && i + 1 < grid.width * grid.height;
        return [{ marker: begin }, "picture", { marker: end }, ...(endsLine ? [{ marker: "\n" }] : [])];
      }).flat();
      const whole: TilePart[] = [{ marker: "<image>" }, "picture", { marker: "</image>" }];
      if (parts.length === 0) return whole;
      return [...whole, ...around([{ marker: "<slice>" }, { marker: "</slice>" }], parts)];
    },
    picturesOf: (image) => slicesOf(image, rule),
  };
}

/**
 * Positions of the patches in line order: a grid of learned positions is stretched over any picture, and each patch
 * gets the nearest.
 */
function positionsOf(model: ClipModel): Projector["rowsOf"] {
  const { dim } = model;
  const table = model.matrix("v.position_embd", { inDim: dim, outDim: GRID_SIDE * GRID_SIDE });
  const bias = model.bias("v.patch_embd", dim);
  return ({ width, height }) => {
    const learned = model.floats(table);
    const biases = bias && model.floats(bias);
    const added = new Float32Array(width * height * dim);
    for (let i = 0; i < width * height; i++) {
      const row = Math.floor((GRID_SIDE * Math.floor(i / width)) / height);
      const column = Math.floor((GRID_SIDE * (i % width)) / width);
      const at = (row * GRID_SIDE + column) * dim;
      for (let j = 0; j < dim; j++) added[i * dim + j] = learned[at + j]! + (biases ? biases[j]! : 0);
    }
    return { count: width * height, added };
  };
}

/** Attention of the queries over the patches: both are rows of one sequence, and the queries' span is the patches. */
function lookingOn(model: ClipModel, queries: number): Pick<Projector, "merge" | "spansOf" | "projection" | "finish"> {
  const { dim, path } = model;
  const width = widthOf(model, "resampler.kv");
  if (width % HEAD_DIM !== 0) {
    const expected = `a multiple of ${HEAD_DIM} to which it leads`;
    throw new AppError("bad_file", `${path}: tensor 'resampler.kv.weight': expected ${expected}, got ${width}`);
  }
  const table = model.plain("resampler.query", { inDim: width, outDim: queries });
  return {
    projection: attentionOn(model, width),
    merge(states, grid) {
      const count = grid.width * grid.height;
      const stride = dim + width;
      const out = new Float32Array((count + queries) * stride);
      const waves = wavesOf(grid, width);
      for (let i = 0; i < count; i++) {
        out.set(states.subarray(i * dim, (i + 1) * dim), i * stride);
        out.set(waves.subarray(i * width, (i + 1) * width), i * stride + dim);
      }
      const asked = model.floats(table);
      for (let i = 0; i < queries; i++) {
        out.set(asked.subarray(i * width, (i + 1) * width), (count + i) * stride + dim);
      }
      return out;
    },
    spansOf(grid) {
      const count = grid.width * grid.height;
      return [{ first: count, end: count + queries, seen: { first: 0, end: count } }];
    },
    finish: (rows, grid) => rows.slice(grid.width * grid.height * width),
  };
}

/**
 * The input of a row is a state of the tower, and a patch's position or a query. The patches' own outputs are unused.
 */
function attentionOn(model: ClipModel, width: number): Part {
  const { dim } = model;
  const buf = (name: string, size = width) => ({ name, dim: size });
  const [state, own, values, keys, asked] = [buf("state", dim), buf("own"), buf("values"), buf("keys"), buf("asked")];
  const [q, k, v, seen, projected] = [buf("q"), buf("k"), buf("v"), buf("seen"), buf("projected")];
  const nHeads = width / HEAD_DIM;
  const steps: Step[] = [
    ...inputSteps(state, own),
    ...project(model, "resampler.kv", { out: values, x: state }),
    norm(model, "layer", { out: values, x: values, name: "resampler.ln_kv" }),
    { op: "add", out: keys, a: values, b: own, scale: 1 },
    norm(model, "layer", { out: asked, x: own, name: "resampler.ln_q" }),
    ...project(model, "resampler.attn.q", { out: q, x: asked }),
    ...project(model, "resampler.attn.k", { out: k, x: keys }),
    ...project(model, "resampler.attn.v", { out: v, x: values }),
    {
      op: "bidirectionalAttention",
      out: seen,
      q,
      k,
      v,
      nHeads,
      headDim: HEAD_DIM,
      scale: 1 / Math.sqrt(HEAD_DIM),
      inSpans: true,
    },
    ...project(model, "resampler.attn.out", { out: asked, x: seen }),
    norm(model, "layer", { out: asked, x: asked, name: "resampler.ln_post" }),
    ...project(model, "resampler.proj", { out: projected, x: asked }),
  ];
  return { steps, result: projected };
}

/** Sine and cosine of the column, then of the line, of each patch: (patches, width). */
function wavesOf(grid: Grid, width: number): Float32Array {
  const each = width / 4;
  const f32 = Math.fround;
  const rates = Float32Array.from({ length: each }, (_, i) => 1 / f32(BASE ** f32(i / each)));
  const out = new Float32Array(grid.width * grid.height * width);
  for (let i = 0; i < grid.width * grid.height; i++) {
    const coordinates = [i % grid.width, Math.floor(i / grid.width)];
    for (const [axis, coordinate] of coordinates.entries()) {
      for (let j = 0; j < each; j++) {
        const angle = f32(rates[j]! * coordinate);
        out[i * width + 2 * axis * each + j] = Math.sin(angle);
        out[i * width + (2 * axis + 1) * each + j] = Math.cos(angle);
      }
    }
  }
  return out;
}
