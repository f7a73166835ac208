/** RoPE of image encoders, by the line and the column of a patch. */
import type { Buf, RopeScaling, Step } from "../program/step.ts";
import { AppError } from "../../base/index.ts";
import type { ClipModel } from "./clip.ts";
import type { LayerOptions } from "./tower.ts";

const BASE = 10_000;

/**
 * Pairs with individual frequencies; the first `byLine` rotate by the line, the rest by the column.
 * @param periods 1 / frequency of each pair
 */
function rotation(style: RopeScaling["style"], periods: Float32Array, byLine: number): RopeScaling {
  return {
    base: 1, // its powers are 1, because `freqFactors` has the frequencies
    rotaryDim: 2 * periods.length,
    style,
    freqScale: 1,
    extFactor: 0,
    attnFactor: 1,
    betaFast: 32,
    betaSlow: 1,
    ctxLenOrig: 1,
    freqFactors: periods,
    sections: { pairs: [0, byLine, periods.length - byLine], interleaved: false },
  };
}

const turnBy =
  (headDim: number, rope: RopeScaling): NonNullable<LayerOptions["turn"]> =>
  (x, heads) => [{ op: "rope", x, heads, headDim, rope }];

/**
 * Pairs are half a head apart; the first half of them rotates by lines, the second, with the same frequencies, by
 * columns.
 */
export function halves(model: ClipModel): NonNullable<LayerOptions["turn"]> {
  const quarter = quarterOf(model);
  const periods = Float32Array.from({ length: 2 * quarter }, (_, i) => BASE ** ((i % quarter) / quarter));
  return turnBy(model.headDim, rotation("neox", periods, quarter));
}

/** Neighbours form pairs; every second frequency rotates by lines, the others by columns. */
export function interleaved(model: ClipModel): NonNullable<LayerOptions["turn"]> {
  const quarter = quarterOf(model);
  const periods = Float32Array.from({ length: 2 * quarter }, (_, i) => {
    const [j, odd] = [i % quarter, i >= quarter ? 0.5 : 0];
    return BASE ** ((j + odd) / quarter);
  });
  return turnBy(model.headDim, rotation("norm", periods, quarter));
}

/** Each half of a head separately, with pairs half of its width apart: the first by columns, the second by lines. */
export function halvesOfHeads(model: ClipModel, base: number): NonNullable<LayerOptions["turn"]> {
  const quarter = quarterOf(model);
  const half = 2 * quarter;
  const periods = Float32Array.from({ length: quarter }, (_, i) => base ** (i / quarter));
  const parts = [rotation("neox", periods, 0), rotation("neox", periods, quarter)];
  return (x, heads) => {
    const [columns, lines] = ["columns", "lines"].map((name) => ({ name, dim: x.dim / 2 })) as [Buf, Buf];
    return [
      ...[columns, lines].flatMap((out, i): Step[] => [
        { op: "slice", out, x, heads, at: i * half },
        { op: "rope", x: out, heads, headDim: half, rope: parts[i]! },
      ]),
      { op: "join", out: x, a: columns, b: lines, heads },
    ];
  };
}

function quarterOf({ headDim, path }: ClipModel): number {
  if (headDim % 4 === 0 && headDim > 0) return headDim / 4;
  throw new AppError(
    "bad_file",
    `${path}: head size of an image encoder with RoPE: expected a multiple of 4, got ${headDim}`,
  );
}
