/** Lists of strings as bytes equal lists of decoded strings, wherever the windows of a header end. */
import { expect, test } from "bun:test";
import type { Gguf } from "../../../../src/engine/formats/gguf/gguf.ts";
import { parseGguf } from "../../../../src/engine/formats/gguf/parse.ts";
import { openGgufFrom } from "../../../../src/engine/formats/gguf/read.ts";
import { memorySource } from "../../../../src/engine/formats/gguf/source.ts";
import { makeTextReader, textsOf } from "../../../../src/engine/formats/gguf/texts.ts";
import { makeRng } from "../../../../src/engine/text/rng.ts";
import { loadTokenizer, TEXT_KEYS } from "../../../../src/engine/text/tokenizer/load.ts";
import { testSeed } from "../../../seed.ts";
import { encodeGguf, failure } from "./fixture.ts";

const MERGES = "tokenizer.ggml.merges";
const open = (bytes: Uint8Array, asTexts: readonly string[] = []): Gguf =>
  openGgufFrom(() => memorySource(bytes), "m.gguf", { asTexts });
const all = (gguf: Gguf): string[] => {
  const texts = gguf.texts!.get(MERGES)!;
  return Array.from({ length: texts.length }, (_, i) => makeTextReader(texts)(i));
};

test("strings of any length are read, also longer than a window and at its end", () => {
  const rng = makeRng(testSeed);
  const strings = Array.from({ length: 40 }, () => "aé▁😀"[rng.uint32() % 3]!.repeat(rng.uint32() % 120_000));
  strings.splice(7, 0, "", "x".repeat(2 ** 20 - 8), "y".repeat(2 ** 21), "");
  const bytes = encodeGguf({ metadata: { "a.before": "b", [MERGES]: strings, "z.after": { u32: 7 } }, tensors: [] });
  const gguf = open(bytes, TEXT_KEYS);
  expect(all(gguf)).toEqual(strings);
  expect([gguf.metadata.get(MERGES), gguf.metadata.get("z.after")]).toEqual([[], 7]);
  expect(open(bytes).metadata.get(MERGES)).toEqual(strings);
});

test("truncated and too long strings give the same error packed and as strings", () => {
  const bytes = encodeGguf({ metadata: { [MERGES]: ["a b", "c d"] }, tensors: [] });
  const at = Buffer.from(bytes).indexOf("c d") - 8;
  for (const length of [4096n, 2n ** 25n, 2n ** 60n]) {
    new DataView(bytes.buffer, bytes.byteOffset).setBigUint64(at, length, true);
    const message = failure(() => parseGguf(bytes, "m.gguf"));
    expect(message).toContain("item 1");
    expect(failure(() => parseGguf(bytes, "m.gguf", { asTexts: TEXT_KEYS }))).toBe(message);
  }
});

test("packed merges give the token ids of merges as strings", () => {
  const pieces = ["▁", "a", "b", "é", "\u{7ff}", "\u{d7ff}", "\uffff", "😀", "▁a", "éé", "é\u{7ff}", "😀a", "\ud7ffb"];
  const merges = ["▁ a", "é é", "é \u{7ff}", "😀 a", "\u{d7ff} b", "b \uffff"];
  const metadata = {
    "tokenizer.ggml.model": "gemma4",
    "tokenizer.ggml.tokens": ["<bos>", ...pieces, "b\uffff"],
    "tokenizer.ggml.bos_token_id": { u32: 0 },
    [MERGES]: merges,
  };
  const bytes = encodeGguf({ metadata, tensors: [] });
  const [whole, packed] = [open(bytes), open(bytes, TEXT_KEYS)];
  const text = " aéé\u{7ff}éé\u{7ff}😀a\u{d7ff}bb\uffff a";
  const idsOf = ({ metadata: from, texts }: Gguf): number[] => [
    ...loadTokenizer(from, "m.gguf", texts).encode(text, { addSpecial: false, parseSpecial: false }),
  ];
  const expected = ["▁a", "éé", "\u{7ff}", "éé", "\u{7ff}", "😀a", "\ud7ffb", "b\uffff", "▁a"];
  expect(idsOf(packed)).toEqual(expected.map((piece) => metadata["tokenizer.ggml.tokens"].indexOf(piece)));
  expect(idsOf(whole)).toEqual(idsOf(packed));
  expect(textsOf(merges)).toMatchObject({ length: merges.length });
});
