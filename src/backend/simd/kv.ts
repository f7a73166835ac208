/** The KV cache of a session: what the layers keep, and where. How positions lie in it is told in ops/attend.h. */
import type { KV_TYPES } from "../../../kernels/simd/layout.ts";
import type { RopeScaling } from "../step.ts";
import type { Block, Memory } from "./memory.ts";

/** Positions are filled up to this: scores are made for so many at once. */
const TILE = 32;
const VALUE_FILL = 16;

export type KvType = keyof typeof KV_TYPES;

export interface KvLayer {
  readonly kvHeads: number;
  readonly headDim: number;
  readonly valueDim: number;
  /** How keys were rotated, which a shift turns on. */
  readonly rope?: RopeScaling | undefined;
  readonly keys: Block;
  readonly values: Block;
}

export interface KvShape {
  readonly slots: number;
  /** Filled up to whole tiles. */
  readonly ctxLen: number;
  readonly type: KvType;
}

export const fillContext = (ctxLen: number): number => Math.ceil(ctxLen / TILE) * TILE;
const fillHead = (headDim: number): number => Math.ceil(headDim / VALUE_FILL) * VALUE_FILL;
const valueBytes = (type: KvType): number => (type === "f32" ? 4 : 2);

export function allocateLayer(
  memory: Memory,
  { slots, ctxLen, type }: KvShape,
  { kvHeads, headDim, valueDim, rope }: Omit<KvLayer, "keys" | "values">,
): KvLayer {
  const positions = slots * kvHeads * ctxLen * valueBytes(type);
  const what = `KV cache of ${slots} × ${ctxLen} tokens`;
  return {
    kvHeads,
    headDim,
    valueDim,
    rope,
    keys: memory.allocate(positions * headDim, what),
    values: memory.allocate(positions * fillHead(valueDim), what),
  };
}

/** Copies the first `length` tokens of one slot to another, and up to a tile more, which mean nothing there. */
export function copyLayer(
  layer: KvLayer,
  { ctxLen, type }: KvShape,
  { from, to, length }: { from: number; to: number; length: number },
): void {
  const filled = fillContext(length);
  for (const [block, width] of [
    [layer.keys, layer.headDim],
    [layer.values, fillHead(layer.valueDim)],
  ] as const) {
    const bytes = width * valueBytes(type);
    for (let head = 0; head < layer.kvHeads; head++) {
      const source = (from * layer.kvHeads + head) * ctxLen * bytes;
      const target = (to * layer.kvHeads + head) * ctxLen * bytes;
      block.view.copyWithin(target, source, source + filled * bytes);
    }
  }
}
