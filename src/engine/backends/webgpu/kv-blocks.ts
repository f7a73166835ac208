/** Keys and values of a slot as bytes, in order of position, as in the cache. */
import { assert } from "../../../base/index.ts";
import type { KvBlocks } from "../../program/kept-slots.ts";
import { cachedSides, type ShiftParts } from "./kv-cache.ts";
import type { Plan } from "./plan.ts";
import { readBuffer } from "./read-buffer.ts";

/** Positions per block: enough for copies of several KB, few enough for prompts to share blocks. */
const BLOCK_LENGTH = 64;
/** Increased when the bytes of a position change. */
const FORMAT = 2;

interface BlockOptions {
  readonly slots: number;
  readonly checkpoints: KvBlocks["checkpoints"];
  readonly reach: Plan["reach"];
  /** Called before a block is written. */
  readonly onWrite: () => void;
}

export function makeKvBlocks(parts: ShiftParts, { slots, checkpoints, reach, onWrite }: BlockOptions): KvBlocks {
  const { device, layers, ctxLen, cacheType } = parts;
  const sides = () => layers.flatMap(cachedSides);
  const tokenBytes = sides().reduce((sum, side) => sum + side.tokenBytes, 0);
  const isLong = layers.some(({ rope }) => rope?.freqFactorsLong && ctxLen > rope.ctxLenOrig);
  const shapes = layers.map(({ nKvHeads, keyDim, valueDim }) => `${nKvHeads}x${keyDim}+${valueDim}`);
  const facts = ["webgpu", FORMAT, device.facts.name, cacheType, isLong ? "long" : "short", ...shapes];
  const check = (slot: number, first: number, count: number): void => {
    const inside = first + count <= ctxLen && slot >= 0 && slot < slots;
    assert(inside && count > 0 && count <= BLOCK_LENGTH, `block of ${count} at ${first} of slot ${slot}`);
    assert(first % BLOCK_LENGTH === 0, `a block begins at ${first}`);
  };
  return {
    length: BLOCK_LENGTH,
    layout: facts.join(" "),
    checkpoints,
    bytesOf: (count) => count * tokenBytes,
    async read(slot, first, count) {
      check(slot, first, count);
      if (tokenBytes === 0) return new Uint8Array();
      return readBuffer(
        device,
        sides().map(({ buffer, tokenBytes: each, positions }) => {
          return { buffer, offset: (slot * positions + first) * each, size: count * each };
        }),
      );
    },
    async write(slot, { first, count, bytes }) {
      check(slot, first, count);
      assert(bytes.length === count * tokenBytes, `a block of ${count} positions has ${bytes.length} bytes`);
      onWrite();
      await reach({ slots: slot + 1, positions: first + count });
      let at = 0;
      for (const { buffer, tokenBytes: each, positions } of sides()) {
        const part = bytes.slice(at, at + count * each);
        device.gpu.queue.writeBuffer(buffer, (slot * positions + first) * each, part);
        at += part.length;
      }
    },
  };
}
