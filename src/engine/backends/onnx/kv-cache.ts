/**
 * The KV cache's memory and the operations on it between passes. Layout per layer: (slots, nKvHeads, ctxLen, headDim),
 * so that a pass can bind a range of slots as one piece of memory.
 */
import { AppError } from "../../../base/index.ts";
import type { RopeScaling } from "../../program/step.ts";
import { rotateHead, ropeShift } from "../../program/rope.ts";
import type { KvCache, LayerCache } from "./executor.ts";

/**
 * Reserves the memory of a cache. The system provides pages when they are first written. Throws `too_large` if there is
 * not enough.
 */
export function makeKvCache(
  layers: readonly Pick<LayerCache, "layer" | "nKvHeads" | "headDim">[],
  { slots, ctxLen }: { slots: number; ctxLen: number },
): KvCache {
  const sizeOf = ({ nKvHeads, headDim }: Pick<LayerCache, "nKvHeads" | "headDim">): number =>
    slots * nKvHeads * ctxLen * headDim;
  try {
    return {
      slots,
      ctxLen,
      layers: layers.map(({ layer, nKvHeads, headDim }) => {
        const size = sizeOf({ nKvHeads, headDim });
        return { layer, nKvHeads, headDim, keys: new Float32Array(size), values: new Float32Array(size) };
      }),
    };
  } catch (error) {
    const bytes = layers.reduce((sum, layer) => sum + 2 * 4 * sizeOf(layer), 0);
    const what = `KV cache of ${slots} × ${ctxLen} tokens`;
    const message = `${what}: expected what this machine can allocate, got ${bytes} bytes`;
    throw new AppError("too_large", message, { cause: error });
  }
}

/** Copies the first `length` tokens of one slot to another. */
export function copyTokens(
  cache: KvCache,
  options: { layer: LayerCache; from: number; to: number; length: number },
): void {
  const { layer, from, to, length } = options;
  const headSize = cache.ctxLen * layer.headDim;
  for (let head = 0; head < layer.nKvHeads; head++) {
    const source = (from * layer.nKvHeads + head) * headSize;
    const target = (to * layer.nKvHeads + head) * headSize;
    for (const values of [layer.keys, layer.values]) values.copyWithin(target, source, source + length * layer.headDim);
  }
}

interface Shift {
  readonly layer: LayerCache;
  readonly slot: number;
  readonly keep: number;
  readonly discard: number;
  readonly length: number;
  /** RoPE of this layer's keys; undefined: none. */
  readonly rope: RopeScaling | undefined;
}

/** Moves the tokens from keep + discard on down by `discard`, and rotates their keys back by as many positions. */
export function shiftTokens(cache: KvCache, { layer, slot, keep, discard, length, rope }: Shift): void {
  const { nKvHeads, headDim, keys, values } = layer;
  const back = rope && ropeShift(rope, { discard, ctxLen: cache.ctxLen });
  for (let head = 0; head < nKvHeads; head++) {
    const first = (slot * nKvHeads + head) * cache.ctxLen * headDim;
    const target = first + keep * headDim;
    const source = target + discard * headDim;
    const end = first + length * headDim;
    for (const each of [keys, values]) each.copyWithin(target, source, end);
    if (!back) continue;
    for (let at = target; at < end - discard * headDim; at += headDim) rotateHead(keys, at, back, 0, rope);
  }
}
