/** The KV cache of a session: its layers and their memory. ops/attend.h has the layout of positions. */
import { assert } from "../../../base/index.ts";
import type { KV_TYPES } from "../../../../kernels/simd/layout.ts";
import type { KvOption, LoadOptions, Program, SlotBytes } from "../../program/backend.ts";
import type { Growth, KvBlocks } from "../../program/kept-slots.ts";
import { memoryLayers } from "../../program/memory.ts";
import { keepingSteps, valuesOf } from "../../program/sequence-state.ts";
import type { KvState } from "../../program/kept-state.ts";
import type { RopeScaling, Step } from "../../program/step.ts";
import type { Block, Memory } from "./memory.ts";

/** Positions are padded to a multiple of this number, because this many scores are computed at once. */
const TILE = 32;
const VALUE_FILL = 16;
/** Values that share a scale. */
const GROUP = 32;

export type KvType = keyof typeof KV_TYPES;

export interface KvLayer {
  readonly kvHeads: number;
  readonly headDim: number;
  readonly valueDim: number;
  /** RoPE of the keys, which a shift continues. */
  readonly rope?: RopeScaling | undefined;
  readonly keys: Block;
  readonly values: Block;
}

export interface KvShape {
  readonly slots: number;
  /** Padded to whole tiles. */
  readonly ctxLen: number;
  readonly type: KvType;
}

export const fillContext = (ctxLen: number): number => Math.ceil(ctxLen / TILE) * TILE;
/** Stored values per head: `headDim` for keys, unless they are rotated. */
const fillHead = (type: KvType, headDim: number): number => {
  const fill = type === "q4_0" ? GROUP : VALUE_FILL;
  return Math.ceil(headDim / fill) * fill;
};
/** The values of a key that are stored. */
const fillKey = (type: KvType, headDim: number): number => (isRotated(type) ? fillHead(type, headDim) : headDim);
/** Bytes of `count` values of a position: 32 of them share a scale, a float in 8 bits, a half float in 4. */
const kvBytes = (type: KvType, count: number): number => {
  if (type === "q8_0") return count + 4 * Math.ceil(count / GROUP);
  return type === "q4_0" ? (count / GROUP) * (GROUP / 2 + 2) : count * (type === "f32" ? 4 : 2);
};
/** Heads are multiplied by a Hadamard matrix, which spreads single large values over all: four-bits.h. */
export const isRotated = (type: KvType): boolean => type === "q4_0" || type === "q8_0";

/** Encoders have no cache: their keys and values live for one pass. */
export const kvTypeOf = ({ precise, small, kvType = "f16" }: Pick<LoadOptions, KvOption>, encodes: boolean): KvType =>
  precise || (small && kvType === "f16") ? "f32" : encodes ? "f16" : kvType;

/** A memory has a bounded size, and every row reads all of it: it is never rounded to fewer than 16 bits. */
export const memoryType = (type: KvType): KvType => (type === "f32" ? "f32" : "f16");

/** Bytes of a slot; latent values are stored twice, as keys and as values. */
export function slotBytes({ steps }: Pick<Program, "steps">, options: Pick<LoadOptions, KvOption>): SlotBytes {
  const type = kvTypeOf(options, false);
  let [perToken, once] = [0, 0];
  for (const { step, state } of keepingSteps(steps)) {
    if (state.kind !== "kv") once += 4 * valuesOf(state);
    else {
      const values = kvBytes(type, fillHead(type, valueDimOf(step, state)));
      perToken += state.nKvHeads * (kvBytes(type, fillKey(type, state.keyDim)) + values);
    }
  }
  for (const { rows, nKvHeads, headDim } of memoryLayers(steps)) {
    const own = memoryType(type);
    once += fillContext(rows) * nKvHeads * (kvBytes(own, headDim) + kvBytes(own, fillHead(own, headDim)));
  }
  return { perToken, once };
}

export const valueDimOf = (step: Step, state: KvState): number =>
  step.op === "latentAttention" ? step.valueDim : state.valueDim;

export function allocateLayer(
  memory: Memory,
  { slots, ctxLen, type }: KvShape,
  { kvHeads, headDim: keyDim, valueDim: width, rope }: Omit<KvLayer, "keys" | "values">,
): KvLayer {
  const headDim = fillKey(type, keyDim);
  const valueDim = isRotated(type) ? fillHead(type, width) : width;
  const positions = slots * kvHeads * ctxLen;
  const what = `KV cache of ${slots} × ${ctxLen} tokens`;
  return {
    kvHeads,
    headDim,
    valueDim,
    rope,
    keys: memory.allocate(positions * kvBytes(type, headDim), what),
    values: memory.allocate(positions * kvBytes(type, fillHead(type, valueDim)), what),
  };
}

/** Copies the first `length` tokens of one slot to another, plus up to a tile of padding. */
export function copyLayers(
  layers: readonly KvLayer[],
  shape: KvShape,
  which: { from: number; to: number; length: number },
): void {
  const { slots, ctxLen } = shape;
  const { from, to, length } = which;
  assert(from < slots && to < slots && length <= ctxLen, `copy of ${length} from ${from} to ${to}`);
  for (const layer of layers) copyLayer(layer, shape, which);
}

function copyLayer(
  layer: KvLayer,
  { ctxLen, type }: KvShape,
  { from, to, length }: { from: number; to: number; length: number },
): void {
  const filled = fillContext(length);
  for (const [block, width] of [
    [layer.keys, layer.headDim],
    [layer.values, fillHead(type, layer.valueDim)],
  ] as const) {
    const bytes = kvBytes(type, width);
    for (let head = 0; head < layer.kvHeads; head++) {
      const source = (from * layer.kvHeads + head) * ctxLen * bytes;
      const target = (to * layer.kvHeads + head) * ctxLen * bytes;
      block.view.copyWithin(target, source, source + filled * bytes);
    }
  }
}

/** Undefined if memory cannot be freed. */
export function makeGrowth(layers: readonly KvLayer[], { ctxLen, type }: KvShape, memory: Memory): Growth | undefined {
  if (!memory.discard) return undefined;
  const sides = layers.flatMap(({ keys, values, kvHeads, headDim, valueDim }) => [
    { block: keys, bytes: kvHeads * kvBytes(type, headDim) },
    { block: values, bytes: kvHeads * kvBytes(type, fillHead(type, valueDim)) },
  ]);
  return {
    tokenBytes: sides.reduce((sum, { bytes }) => sum + bytes, 0),
    release(slot) {
      for (const { block, bytes } of sides) memory.discard?.(block, slot * ctxLen * bytes, ctxLen * bytes);
    },
  };
}

/** Positions per block: enough for copies of several KB, few enough for prompts to share blocks. */
const BLOCK_LENGTH = 64;

/** @param engine identifies the kernels: others differ in rounding and layout */
export function makeKvBlocks(
  layers: readonly KvLayer[],
  shape: KvShape,
  { engine, checkpoints }: { engine: { level: string; build: string }; checkpoints: KvBlocks["checkpoints"] },
): KvBlocks {
  const { ctxLen, slots, type } = shape;
  const isLong = layers.some(({ rope }) => rope?.freqFactorsLong && ctxLen > rope.ctxLenOrig);
  const heads = layers.map(({ kvHeads, headDim, valueDim }) => `${kvHeads}x${headDim}+${valueDim}`);
  const tokenBytes = layers.reduce(
    (sum, { kvHeads, headDim, valueDim }) =>
      sum + kvHeads * (kvBytes(type, headDim) + kvBytes(type, fillHead(type, valueDim))),
    0,
  );
  const bytesOf = (count: number): number => fillContext(count) * tokenBytes;
  const check = (slot: number, first: number, count: number): void => {
    const inside = first + count <= ctxLen && slot >= 0 && slot < slots;
    assert(inside && count > 0 && count <= BLOCK_LENGTH, `block of ${count} at ${first} of slot ${slot}`);
    assert(first % BLOCK_LENGTH === 0, `a block begins at ${first}`);
  };
  return {
    length: BLOCK_LENGTH,
    layout: ["simd", engine.level, engine.build, type, isLong ? "long" : "short", ...heads].join(" "),
    checkpoints,
    bytesOf,
    read(slot, first, count) {
      check(slot, first, count);
      const bytes = new Uint8Array(bytesOf(count));
      let at = 0;
      for (const piece of pieces(layers, shape, { slot, first, count })) {
        bytes.set(piece, at);
        at += piece.length;
      }
      return bytes;
    },
    write(slot, { first, count, bytes }) {
      check(slot, first, count);
      assert(bytes.length === bytesOf(count), `a block of ${count} positions has ${bytes.length} bytes`);
      let at = 0;
      for (const piece of pieces(layers, shape, { slot, first, count })) {
        piece.set(bytes.subarray(at, at + piece.length));
        at += piece.length;
      }
    },
  };
}

/** The memory of some positions of a slot per layer and head, padded to whole tiles. */
function* pieces(
  layers: readonly KvLayer[],
  { ctxLen, type }: KvShape,
  { slot, first, count }: { slot: number; first: number; count: number },
): Generator<Uint8Array> {
  for (const { keys, values, kvHeads, headDim, valueDim } of layers) {
    for (const [block, width] of [
      [keys, headDim],
      [values, fillHead(type, valueDim)],
    ] as const) {
      const bytes = kvBytes(type, width);
      for (let head = 0; head < kvHeads; head++) {
        const from = ((slot * kvHeads + head) * ctxLen + first) * bytes;
        yield block.view.subarray(from, from + fillContext(count) * bytes);
      }
    }
  }
}
