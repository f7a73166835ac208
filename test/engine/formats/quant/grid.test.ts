/** The grids of the IQ types: every point equals ggml's, also points that no reference block uses. */
import { expect, test } from "bun:test";
import { evenSigns, unpackGrid, wordAt } from "../../../../src/engine/formats/quant/grid.ts";
import { IQ1_GRID } from "../../../../src/engine/formats/quant/iq1_s.ts";
import { IQ2_S_GRID } from "../../../../src/engine/formats/quant/iq2_s.ts";
import { IQ2_XS_GRID } from "../../../../src/engine/formats/quant/iq2_xs.ts";
import { IQ2_XXS_GRID } from "../../../../src/engine/formats/quant/iq2_xxs.ts";
import { IQ3_S_GRID } from "../../../../src/engine/formats/quant/iq3_s.ts";
import { IQ3_XXS_GRID } from "../../../../src/engine/formats/quant/iq3_xxs.ts";

/** Bytes and SHA-256 of the tables in ggml (0.25.1), little-endian. */
const TABLES = [
  ["iq1s_grid", IQ1_GRID, 2048 * 8, "07540ffc1aeaf6ad4d97e96b0fcc765aae39671d4ae4a27bbd0e796fde167c6a"],
  ["iq2xxs_grid", IQ2_XXS_GRID, 256 * 8, "05826b5d3e472a3a78f196be62ac78acf81df0f909626e12ab9fa2a5d490dd54"],
  ["iq2xs_grid", IQ2_XS_GRID, 512 * 8, "06e47aaca60b4dc1d9b5a3f34540437058a6b142b4d7a59d5ded769b4d1bf1de"],
  ["iq2s_grid", IQ2_S_GRID, 1024 * 8, "e1aa1473412b0552c2174c30ef22ab4073f6a181b85a17056e8249bd2932fd88"],
  ["iq3xxs_grid", IQ3_XXS_GRID, 256 * 4, "46e35f5a997efdee6c99ce57854c8a0d4f0ff8ca57e5e8a60c0793ea580acf5d"],
  ["iq3s_grid", IQ3_S_GRID, 512 * 4, "bd1af4945a1717c65610b0284e4628b9a1ba3b306fae3a06f6e5f597356e349f"],
] as const;

test.each([...TABLES])("%s has ggml's bytes", (_, grid, byteLength, digest) => {
  expect(grid.length).toBe(byteLength);
  expect(new Bun.CryptoHasher("sha256").update(grid).digest("hex")).toBe(digest);
});

test("a grid contains the points whose bits are set, lowest digit first", () => {
  const bits = Uint8Array.of(0b0010_0001, 0b1).toBase64(); // points 0, 5 and 8 of 9
  expect([...unpackGrid({ width: 2, levels: [10, 20, 30] }, bits)]).toEqual([10, 10, 30, 20, 30, 30]);
});

test("evenSigns adds an eighth sign that makes the number of signs even", () => {
  const ones = (value: number): number => value.toString(2).replaceAll("0", "").length;
  for (let bits = 0; bits < 128; bits++) {
    expect(evenSigns(bits) & 127).toBe(bits);
    expect(ones(evenSigns(bits)) % 2).toBe(0);
  }
});

test("wordAt reads at any address", () => {
  expect(wordAt(Uint8Array.of(9, 0x78, 0x56, 0x34, 0xf2), 1) >>> 0).toBe(0xf2345678);
});
