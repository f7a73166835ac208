/** Pictures of a fixed size with a learned position per patch. */
import type { Step, Weight } from "../../program/step.ts";
import { AppError } from "../../../base/index.ts";
import type { ClipModel } from "../clip.ts";
import type { Grid, Projector } from "../projector.ts";
import { buffersOf, inputSteps, layers, norm, patchEmbedding } from "../tower.ts";

/** Patches across and down of such a picture. */
export function fixedGrid({ imageSize, patch, path }: ClipModel): Grid {
  if (imageSize % patch === 0) return { width: imageSize / patch, height: imageSize / patch };
  const expected = `a multiple of 'clip.vision.patch_size', ${patch}`;
  throw new AppError("bad_file", `${path}: 'clip.vision.image_size': expected ${expected}, got ${imageSize}`);
}

/** Steps from patches to the stream, plus the vectors added to each. */
export function positioned(model: ClipModel): Step[] {
  const { pixels, x } = buffersOf(model);
  const added = { name: "added", dim: model.dim };
  return [...inputSteps(pixels, added), ...patchEmbedding(model), { op: "add", out: x, a: x, b: added, scale: 1 }];
}

/** Shared by projectors over SigLIP: pictures of a fixed size with black padding, all layers, and a final norm. */
export function siglip(model: ClipModel, grid: Grid) {
  const { imageSize, patch } = model;
  const { x } = buffersOf(model);
  return {
    size: { kind: "fixed", side: imageSize },
    pad: [0, 0, 0],
    patch,
    tower: {
      steps: [
        ...positioned(model),
        ...layers(model, { norm: "layer", mayBeSwapped: true }),
        norm(model, "layer", { out: x, x, name: "v.post_ln" }),
      ],
      result: x,
    },
    rowsMax: grid.width * grid.height,
    rowsOf: withPositions(model, grid),
  } as const satisfies Partial<Projector>;
}

/**
 * The rows of the tower: patches line by line, plus their positions and the bias.
 * @param first a row without a patch before them
 */
export function withPositions(model: ClipModel, { width, height }: Grid, first?: Weight): Projector["rowsOf"] {
  const { dim } = model;
  const count = width * height + (first ? 1 : 0);
  const table = model.matrix("v.position_embd", { inDim: dim, outDim: count });
  const bias = model.bias("v.patch_embd", dim);
  const start = first ? dim : 0;
  return () => {
    const added = model.floats(table);
    const biases = bias && model.floats(bias);
    if (biases) for (let i = start; i < added.length; i++) added[i]! += biases[i % dim]!;
    if (!first) return { count, added };
    for (const [i, value] of model.floats(first).entries()) added[i]! += value;
    return { count, added, order: Int32Array.from({ length: count }, (_, row) => row - 1) };
  };
}
