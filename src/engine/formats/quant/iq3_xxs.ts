/**
 * IQ3_XXS: 256 weights per block in 8 groups of 32. f16 d, 64 bytes that pick grid points of 4 weights, then a word per
 * group: 4 × 7 bits of signs for 8 weights each, 4 bits of scale s.
 * w = d · (s + ½) / 2 · point · sign
 */
import { halfAt } from "../half.ts";
import { byBlocks } from "./blocks.ts";
import { evenSigns, unpackGrid, wordAt } from "./grid.ts";

/** `iq3xxs_grid`, ggml-common.h. */
export const IQ3_XXS_GRID = unpackGrid(
  { width: 4, levels: [4, 12, 20, 28, 36, 44, 52, 62] },
  "FYoFAgQAACgKBSIFAhAAARUCBYoAggAgggUgAAAAAAEACACAEIAAKIIAAAQABAAAAAAAIAAAEAAAUQAACAACAAoFChWAAQAABQIFAAAAAAAKBQIB" +
    "AAAABAUAAQJAAEAAIgAAAAABAAAAABEAQAAAAiAAAAAAAAAAAAAEAAEAAAAFCkUCBAAAACoFAgEAAIgBBYIFgAEgAAACEQAAAAAAEQAAACAACAAA" +
    "CACAAAIAABAAAAAAAAAAAApAAAAgAAAAAgUKAAABIAQFAAECUAAAAAoBIAAABAAEAAIACAAAAAAAAAABgAAABEEABAAAIAAAABAAQAAACAAAAAAI" +
    "AAABABCAAKAAiAAAAAAAAAAAABAAAAGAAQBBAIAAAAAgAAAAEAAAAAACEAAAACAACAAAAQAAAAAAAAAAIAUAAQAAAAAABAAAAgAAAUEAQAAAIAAA" +
    "ABAABAAAAAQEAAAAAAgAAAABiAAAAAAEBAAAAgAAAAAAAAAAAAEAAAAAEAAEAAAAAAAQAFAAEAAAAAIAAAACAACAAAAAABAAAAAAQQAAAAAAAAAA" +
    "EAAAACAAAAAABAAAAAAACAAAAAAIAAIAAAAAAKgBAAQABAAAAABAAAEAAAAABAAAIAQAAAEgAAgAAAEAAAACAAIAAAAFABAAAAAAAAAAAAEAAAAA" +
    "AAAAAAAAAAA",
);

export const iq3_xxs = byBlocks({
  name: "iq3_xxs",
  ggmlType: 18,
  blockLen: 256,
  blockBytes: 98,
  grid: IQ3_XXS_GRID,
  unpack(src, at, out, y) {
    const d = halfAt(src, at);
    for (let group = 0; group < 8; group++) {
      const word = wordAt(src, at + 66 + group * 4);
      const scale = d * (0.5 + (word >>> 28)) * 0.5;
      for (let part = 0; part < 8; part++) {
        const point = src[at + 2 + group * 8 + part]! * 4;
        const signs = evenSigns((word >>> (7 * (part >> 1))) & 127) >> (4 * (part & 1));
        const to = y + group * 32 + part * 4;
        for (let j = 0; j < 4; j++) {
          const weight = scale * IQ3_XXS_GRID[point + j]!;
          out[to + j] = (signs >> j) & 1 ? -weight : weight;
        }
      }
    }
  },
});
