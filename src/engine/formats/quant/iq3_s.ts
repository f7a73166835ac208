/**
 * IQ3_S: 256 weights per block in 8 groups of 32. f16 d, 64 bytes that pick grid points of 4 weights (low 8 bits), 8
 * bytes with the ninth bits, 32 bytes of signs, 4 bytes of 4-bit scales s, low nibbles first.
 * w = d · (2·s + 1) · point · sign
 */
import { halfAt } from "../half.ts";
import { byBlocks } from "./blocks.ts";
import { unpackGrid } from "./grid.ts";

/** `iq3s_grid`, ggml-common.h. */
export const IQ3_S_GRID = unpackGrid(
  { width: 4, levels: [1, 3, 5, 7, 9, 11, 13, 15] },
  "p1cjCKUKBZIXI4kiEAAiBKNJIhGkCgAJCCIFShAFgCIBiBIECQIAARQARQiiAEAIQAoAAgAEAAIVAEUIABEAABerBVIAUAIESxECCQIFAEEBpBEE" +
    "CSABBJIJghECAAQBKBQACkQRAAACCQIFAAIAAAAAkQBQAAAACgUCIAIABAGrVYoFKgWAKQWJJBIEAgAAkgAKgQKIABIlAhQKBAFAAIIACSQCAAAk" +
    "EAIEgAEIAAGFAAIAACACACACQAEIAQAABKoEKpQCCAIqEAoAAQABRAEEARQAAQAAAhGKAYogAAgIQgQCAAQRAAIFIAQQQAAIAEAAAAIAAAAKAAUg" +
    "AAAAABEEkQQCAQABhAoEIQgiAAAKIQIIAYAEARAKBSIAAAAABQAQgAEAAAKgAAIAAAAEAAAIABAAAAEAACEAAQgCAAAEEQQAkQRAECoEAgQAAAAE" +
    "AQIIQQAIAACEAYAAEAIgCBIAAQRAAAAAAARAAAAKAAAAAAAABAAAABQABAAAAAAAACoACgAAAQABAIEAAAAQAAAEABAEIAQBARACAAEAAAAAACAA" +
    "CAAEAAkAABAAAAEAIAAAAAEAAAAACgAAAAAAAJEABUABEAQABAIQACgAAAASQQIBAAIAAAQAACQACAAAIggBAAABAAAAAAQABAAAAAQAAAIAAAAA" +
    "AQAAAAAAAAA",
);

export const iq3_s = byBlocks({
  name: "iq3_s",
  ggmlType: 21,
  blockLen: 256,
  blockBytes: 110,
  grid: IQ3_S_GRID,
  unpack(src, at, out, y) {
    const d = halfAt(src, at);
    for (let group = 0; group < 8; group++) {
      const s = (src[at + 106 + (group >> 1)]! >> (4 * (group & 1))) & 15;
      const scale = d * (1 + 2 * s);
      for (let part = 0; part < 8; part++) {
        const ninth = (src[at + 66 + group]! >> part) & 1;
        const point = (src[at + 2 + group * 8 + part]! | (ninth << 8)) * 4;
        const signs = src[at + 74 + group * 4 + (part >> 1)]! >> (4 * (part & 1));
        const to = y + group * 32 + part * 4;
        for (let j = 0; j < 4; j++) {
          const weight = scale * IQ3_S_GRID[point + j]!;
          out[to + j] = (signs >> j) & 1 ? -weight : weight;
        }
      }
    }
  },
});
