/**
 * IQ1_S: 256 weights per block in 8 groups of 32. f16 d, 32 bytes that pick grid points of 8 weights (low 8 bits), then
 * a u16 per group: 4 × 3 high bits of the picks, 3 bits of scale s, the sign of the shift.
 * w = d · (2·s + 1) · (point ± ⅛)
 */
import { halfAt } from "../half.ts";
import { byBlocks } from "./blocks.ts";
import { unpackGrid } from "./grid.ts";

/** `iq1s_grid`, ggml-common.h. Also the grid of IQ1_M. */
export const IQ1_GRID = unpackGrid(
  { width: 8, levels: [-1, 0, 1] },
  "VSUUhaACQlEIRTGohiCKohoIKiAUhVAUgiBERSUVBaACgiCIGAAIgqADKqCIu6oKkKoLACIACqqMgqAIQFEIRSGIgFAUQlEIijAImKAIgCoIRSEU" +
    "hSBIQlUIRQEswqAgiiYAKiSoqqII4q8ICCgoAKACQiiqKCCogCAKmwi5uqggyq6Joq6qOnzr6rq7gg64IrrK0w6SAiIAIiCoiroKggIIACpK4KI7" +
    "IiArogCBQIGqiigIIgEUhVAVgiAJRSFUhaAIAiOoOiCEgiBUQlEIoiAIlVAUAioIuKiCgKBIAiAIgqJoogIoqyoIhSAIgjAIRUAARSEUhaAAQlEA" +
    "RQEpggCKgioIoTAUBVAUgigIRSEUhSACAiCqKgAgErGKriiouqGqqHAAggoIAigiAoQAggBIgKDqsCqqwiCLuiLq2qeLi26okrAqqnKLikQMKiBI" +
    "hEAoiioIqiDIzKIioq+aoOioAgACACqoiAAggKCLoqIouqCAgjIKur64uv7roqArogiKCijqogChMgIM+qTq3u8rqC6Nvn7r+vd/v+Z9ut5p+yf/" +
    "vyb6EunhiiIQqr4OhKoIsqgLgq7/uiTpg4AEYixo8qgKpCsAAioICOKqEgACgioKpiDJgomQgigAogCMgBMAgggIAGyKqqq7Aqa+iqDKAoBrly7Q" +
    "sukQghAuqt4oFdGlBAAKggCKgiAIAaEggqo5uiIyhKAJgBgAiqJiAoEURFEARSGsglAUQlEIqiAoqocKEioIRSEUBaAIQlEIRQEgAqBAoiIAiAAI" +
    "oghqim64qqqAACAKguLIIiEIRFAUQlEJiiAVhVAUhgoIqioqgAAKQlEIRSGoAFAUQlEI4iCIggoYgioIqqKqirCLAgoqqiAogoCqCigIKACpiAIi" +
    "oL4LKLgIirpLsq7/uqT4rqogUihotqAw5oAKAigIImpigCAKAqqqK6rqoqmgoggIECCgiiIAgg4ARSEUhaAKQFEIRSGpBgBKqgIIpQAQDUQUgigI" +
    "RSEUBQAIgoKs8iAAAACqCigKuiDqogIAgkgJKOkUABFLRVEARQGoAlAUQlEIiCQIiCgKQAgARQEUBaACQFEIRQE",
);

/** IQ1S_DELTA and IQ1M_DELTA */
export const IQ1_SHIFT = 0.125;

export const iq1_s = byBlocks({
  name: "iq1_s",
  ggmlType: 19,
  blockLen: 256,
  blockBytes: 50,
  grid: IQ1_GRID,
  unpack(src, at, out, y) {
    const d = halfAt(src, at);
    for (let group = 0; group < 8; group++) {
      const word = src[at + 34 + group * 2]! | (src[at + 35 + group * 2]! << 8);
      const scale = d * (2 * ((word >> 12) & 7) + 1);
      const shift = word & 0x8000 ? -IQ1_SHIFT : IQ1_SHIFT;
      for (let part = 0; part < 4; part++) {
        const high = (word >> (3 * part)) & 7;
        const point = (src[at + 2 + group * 4 + part]! | (high << 8)) * 8;
        const to = y + group * 32 + part * 8;
        for (let j = 0; j < 8; j++) out[to + j] = scale * (IQ1_GRID[point + j]! + shift);
      }
    }
  },
});
