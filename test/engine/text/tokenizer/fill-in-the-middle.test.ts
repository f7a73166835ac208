import { describe, expect, test } from "bun:test";
import { canFill, encodeFill } from "../../../../src/engine/text/tokenizer/fill-in-the-middle.ts";
import { loadTokenizer } from "../../../../src/engine/text/tokenizer/load.ts";
import { bpeMetadata, TYPE } from "./fixtures.ts";

const MARKERS = ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"] as const;
const special = (...pieces: string[]) => pieces.map((piece) => [piece, TYPE.normal] as const);
const ID = 256; // id of the first special token

test("markers are found by their text, all three or none", () => {
  const whole = bpeMetadata([], special(...MARKERS));
  expect(loadTokenizer(whole, "m").fill).toEqual({ prefix: ID, suffix: ID + 1, middle: ID + 2 });
  expect(canFill(whole)).toBe(true);
  const part = bpeMetadata([], special(MARKERS[0], MARKERS[1]));
  expect(loadTokenizer(part, "m").fill).toBeUndefined();
  expect(canFill(part)).toBe(false);
  expect(canFill(new Map())).toBe(false);
});

test("marker ids in the metadata win over marker texts, under both spellings of the keys", () => {
  for (const names of [
    ["fim_pre_token_id", "fim_suf_token_id", "fim_mid_token_id"],
    ["prefix_token_id", "suffix_token_id", "middle_token_id"],
  ]) {
    const named = Object.fromEntries(names.map((name, i) => [`tokenizer.ggml.${name}`, 10 + i]));
    const metadata = bpeMetadata([], special(...MARKERS), named);
    expect(loadTokenizer(metadata, "m").fill).toEqual({ prefix: 10, suffix: 11, middle: 12 });
    expect(canFill(bpeMetadata([], [], named))).toBe(true);
  }
});

test("a prompt is prefix, suffix, middle, and control tokens inside the texts are text", () => {
  const tokenizer = loadTokenizer(bpeMetadata([], special(...MARKERS)), "m");
  const encode = (text: string) => tokenizer.encode(text, { addSpecial: false, parseSpecial: false });
  const before = `a = "${MARKERS[2]}"`;
  const { ids, truncated } = encodeFill(tokenizer, tokenizer.fill!, { before, after: "return", room: undefined });
  expect([...ids]).toEqual([ID, ...encode(before), ID + 1, ...encode("return"), ID + 2]);
  expect(encode(before).length).toBe(before.length);
  expect(truncated).toBe(false);
});

test("BOS comes first if the model adds one", () => {
  const metadata = bpeMetadata([], special(...MARKERS, "<s>"), {
    "tokenizer.ggml.add_bos_token": true,
    "tokenizer.ggml.bos_token_id": ID + 3,
  });
  const tokenizer = loadTokenizer(metadata, "m");
  const { ids } = encodeFill(tokenizer, tokenizer.fill!, { before: "", after: "", room: undefined });
  expect([...ids]).toEqual([ID + 3, ID, ID + 1, ID + 2]);
});

test("a prompt that is too long loses the text furthest from the gap", () => {
  const tokenizer = loadTokenizer(bpeMetadata([], special(...MARKERS)), "m");
  const text = (before: string, after: string, room: number): string => {
    const { ids, truncated } = encodeFill(tokenizer, tokenizer.fill!, { before, after, room });
    expect(truncated).toBe(before.length + after.length > room);
    return tokenizer.detokenize(ids, { special: true }).replaceAll(/<\|fim_(\w)\w*\|>/g, "<$1>");
  };
  expect(text("0123456789", "abcdefghij", 8)).toBe("<p>456789<s>ab<m>");
  expect(text("01", "abcdefghij", 8)).toBe("<p>01<s>abcdef<m>");
  expect(text("0123456789", "a", 8)).toBe("<p>3456789<s>a<m>");
  expect(text("0123", "abcd", 8)).toBe("<p>0123<s>abcd<m>");
  expect(text("0123", "abcd", 0)).toBe("<p><s><m>");
});

describe("other files", () => {
  const FILES = [
    { name: "a.py", text: "one" },
    { name: "b.py", text: "two" },
  ];
  const textOf = (markers: readonly string[], room?: number): [string, boolean] => {
    const tokenizer = loadTokenizer(bpeMetadata([], special(...MARKERS, ...markers)), "m");
    const texts = { before: "012", after: "ab", files: FILES, room };
    const { ids, truncated } = encodeFill(tokenizer, tokenizer.fill!, texts);
    return [tokenizer.detokenize(ids, { special: true }).replaceAll(/<\|fim_(\w)\w*\|>/g, "<$1>"), truncated];
  };

  test("come before the gap, with their names if the model has the markers", () => {
    expect(textOf(["<|repo_name|>", "<|file_sep|>"])).toEqual([
      "<|repo_name|>myproject\n<|file_sep|>a.py\none<|file_sep|>b.py\ntwo<|file_sep|>filename\n<p>012<s>ab<m>",
      false,
    ]);
    expect(textOf([])).toEqual(["\n\n--- snippet ---\n\none\n\n--- snippet ---\n\ntwo<p>012<s>ab<m>", false]);
  });

  test("are cut before the gap's own texts, the first ones first", () => {
    expect(textOf([], 5 + 7)).toEqual(["---\n\ntwo".slice(-7) + "<p>012<s>ab<m>", true]);
    expect(textOf([], 5)).toEqual(["<p>012<s>ab<m>", true]);
    expect(textOf([], 4)).toEqual(["<p>02<s>a<m>".replace("02", "012"), true]);
  });

  test("may be none, which does not change the prompt", () => {
    const tokenizer = loadTokenizer(bpeMetadata([], special(...MARKERS, "<|file_sep|>")), "m");
    const texts = { before: "0", after: "a", room: undefined };
    const ids = encodeFill(tokenizer, tokenizer.fill!, { ...texts, files: [] }).ids;
    expect([...ids]).toEqual([...encodeFill(tokenizer, tokenizer.fill!, texts).ids]);
    expect(ids).toHaveLength(5);
  });
});
