import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { AppError } from "../../../src/base/errors.ts";
import type { Architecture } from "../../../src/library/convert/architecture.ts";
import { gemma4 } from "../../../src/library/convert/archs/gemma4.ts";
import { llama } from "../../../src/library/convert/archs/llama.ts";
import { parseSentencePieceModel } from "../../../src/library/convert/sentence-piece-model.ts";
import { convertTokenizer } from "../../../src/library/convert/tokenizer.ts";
import type { Metadata } from "../../../src/engine/formats/gguf/gguf.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../src/engine/formats/files/write.ts";
import { loadTokenizer } from "../../../src/engine/text/tokenizer/load.ts";
import { golden, goldenTest } from "../../golden.ts";
import {
  bpeMetadata,
  makeProse,
  PARSED,
  spmMetadata,
  trainMerges,
  TYPE,
  WHOLE,
  wpmMetadata,
} from "../../engine/text/tokenizer/fixtures.ts";
import { writeFolder } from "./hugging-face.ts";
import {
  addedTokens,
  byteLevelJson,
  piecesOf,
  sentencePieceModel,
  textJson,
  unigramJson,
  wordPieceJson,
} from "./tokenizer-files.ts";

let root = "";
beforeAll(async () => void (root = await mkdtemp(join(tmpdir(), "hearth-tokenizer-"))));
afterAll(() => rm(root, { recursive: true }));

type Files = Readonly<Record<string, object | string | Uint8Array>>;
const rowsOf = (metadata: Metadata): number => piecesOf(metadata).length;

interface ConvertOptions {
  readonly rows: number;
  readonly config?: Record<string, unknown>;
  readonly architecture?: Architecture;
}

async function convert(files: Files, { rows, config = {}, architecture = llama }: ConvertOptions) {
  const folder = await writeFolder(join(root, crypto.randomUUID()), files);
  return convertTokenizer({ folder: { ...folder, label: "folder" }, config, architecture, rows });
}

/** The metadata as a loader reads it from a file. */
async function written(metadata: Awaited<ReturnType<typeof convert>>["metadata"], arch: string): Promise<Metadata> {
  const path = join(root, `${crypto.randomUUID()}.gguf`);
  await writeGguf(path, { metadata: { "general.architecture": arch, ...metadata }, tensors: [] });
  const gguf = openGguf(path);
  try {
    return gguf.metadata;
  } finally {
    gguf.close();
  }
}

/** Converting the files gives the ids of the original vocabulary. */
async function expectSameIds(original: Metadata, files: Files, texts: readonly string[]): Promise<Metadata> {
  const { metadata, leftOut } = await convert(files, { rows: rowsOf(original) });
  expect(leftOut).toEqual([]);
  const converted = await written(metadata, String(original.get("general.architecture")));
  const [wanted, got] = [loadTokenizer(original, "original"), loadTokenizer(converted, "converted")];
  const idsBy = ({ encode }: typeof got): string[] => texts.map((text) => encode(text, PARSED).join(" "));
  expect(idsBy(got)).toEqual(idsBy(wanted));
  expect(idsBy(got).some((ids) => ids.length > 20)).toBe(true);
  return converted;
}

const PROSE = makeProse(4000);
const MERGES = trainMerges(PROSE, 150);
const TEXTS = [...PROSE.match(/[^.]+\.?\s*/g)!.slice(0, 200), " a  b\n\nc\t", "1234 don't é 🚀<|mark|>x<|end|>"];
const SPECIAL = [
  ["<|mark|>", TYPE.control],
  ["<think>", TYPE.userDefined],
  ["<|end|>", TYPE.control],
] as const;

describe("the tokenizer.json of byte-level BPE:", () => {
  const original = (pre: string): Metadata => bpeMetadata(MERGES, SPECIAL, { "tokenizer.ggml.pre": pre });

  test.each(["gpt-2", "starcoder", "qwen2", "llama-bpe"])("%s gives the ids of its GGUF", async (pre) => {
    for (const pairs of [true, false]) {
      await expectSameIds(original(pre), { "tokenizer.json": byteLevelJson(original(pre), { pairs }) }, TEXTS);
    }
  });

  test("special tokens, flags, end tokens and the template come from the files beside it", async () => {
    const json = byteLevelJson(original("llama-bpe"), { pairs: true });
    const single = [{ SpecialToken: { id: "<|mark|>", type_id: 0 } }, { Sequence: { id: "A", type_id: 0 } }];
    const end = rowsOf(original("llama-bpe")) - 1;
    const { metadata } = await convert(
      {
        "tokenizer.json": { ...json, post_processor: { type: "TemplateProcessing", single } },
        "tokenizer_config.json": {
          bos_token: { content: "<|mark|>" },
          eos_token: "<|end|>",
          chat_template: [
            { name: "default", template: "D" },
            { name: "tool_use", template: "T" },
          ],
        },
        "generation_config.json": { eos_token_id: [end, 7, 8] },
      },
      { rows: end + 1 },
    );
    expect(metadata).toMatchObject({
      "tokenizer.ggml.bos_token_id": { u32: end - 2 },
      "tokenizer.ggml.eos_token_id": { u32: end },
      "tokenizer.ggml.eot_token_id": { u32: 7 },
      "tokenizer.ggml.eom_token_id": { u32: 8 },
      "tokenizer.ggml.add_bos_token": true,
      "tokenizer.ggml.add_eos_token": false,
      "tokenizer.chat_template": "D",
      "tokenizer.chat_template.tool_use": "T",
    });
  });

  test("an end-of-text token that differs from the end of an answer is added to texts, and both end answers", async () => {
    const json = byteLevelJson(original("qwen2"), { pairs: true });
    const single = [{ Sequence: { id: "A", type_id: 0 } }, { SpecialToken: { id: "<|mark|>", type_id: 0 } }];
    const processors = [{ type: "ByteLevel" }, { type: "TemplateProcessing", single }];
    const files = { "tokenizer.json": { ...json, post_processor: { type: "Sequence", processors } } };
    const rows = rowsOf(original("qwen2"));
    const { metadata } = await convert(
      { ...files, "tokenizer_config.json": { add_bos_token: false, eos_token: "<|end|>" } },
      { rows },
    );
    expect(metadata).toMatchObject({
      "tokenizer.ggml.eos_token_id": { u32: rows - 3 },
      "tokenizer.ggml.eot_token_id": { u32: rows - 1 },
      "tokenizer.ggml.add_eos_token": true,
    });
  });

  test("a template in a separate file wins, and add_bos_token of the configuration too", async () => {
    const files = {
      "tokenizer.json": byteLevelJson(original("qwen2"), { pairs: true }),
      "tokenizer_config.json": { add_bos_token: false, bos_token: "<|mark|>", chat_template: "old" },
      "chat_template.jinja": "new",
    };
    const { metadata } = await convert(files, { rows: rowsOf(original("qwen2")) });
    expect(metadata["tokenizer.chat_template"]).toBe("new");
    expect(metadata["tokenizer.ggml.add_bos_token"]).toBe(false);
  });

  test("rows without a token get padding tokens, and tokens without a row are left out", async () => {
    const json = byteLevelJson(original("qwen2"), { pairs: true });
    const rows = rowsOf(original("qwen2"));
    const more = [...addedTokens(original("qwen2")), { id: rows + 2, content: "<late>", special: true }];
    const wide = await convert({ "tokenizer.json": { ...json, added_tokens: more } }, { rows: rows + 5 });
    expect((wide.metadata["tokenizer.ggml.tokens"] as string[]).slice(rows)).toEqual([
      `[PAD${rows}]`,
      `[PAD${rows + 1}]`,
      "<late>",
      `[PAD${rows + 3}]`,
      `[PAD${rows + 4}]`,
    ]);
    const narrow = await convert({ "tokenizer.json": { ...json, added_tokens: more } }, { rows });
    expect(narrow.leftOut).toEqual([{ id: rows + 2, content: "<late>", isSpecial: true }]);
    await expect(convert({ "tokenizer.json": json }, { rows: 100 })).rejects.toThrow(
      "folder: tokenizer: expected at most 100 tokens, one for each row of the embedding, got 406",
    );
  });
});

describe("the tokenizer.json of another model:", () => {
  const words = [...new Set(PROSE.match(/[a-z]+/g))].slice(0, 300);

  test("WordPiece gives the ids of its GGUF", async () => {
    const letters = [..."abcdefghijklmnopqrstuvwxyz"];
    const own = wpmMetadata([
      ...new Set([...words.map((word) => `▁${word}`), ...letters, ...letters.map((l) => `▁${l}`)]),
    ]);
    const config = { cls_token: "[CLS]", sep_token: "[SEP]", unk_token: "[UNK]", pad_token: "[PAD]" };
    const converted = await expectSameIds(
      own,
      { "tokenizer.json": wordPieceJson(own), "tokenizer_config.json": config },
      TEXTS,
    );
    expect(converted.get("tokenizer.ggml.normalizer.lowercase")).toBe(true);
    const [wanted, got] = [own, converted].map((metadata) => loadTokenizer(metadata, "x").encode("Hello the", WHOLE));
    expect(got).toEqual(wanted!);
  });

  test("WordPiece has its usual special tokens unless a file beside it names others", async () => {
    const own = wpmMetadata(["▁a", "▁b", "a", "b"]);
    const marks = {
      cls_token_id: "[CLS]",
      seperator_token_id: "[SEP]",
      unknown_token_id: "[UNK]",
      bos_token_id: "[CLS]",
    };
    const named = { "special_tokens_map.json": { cls_token: { content: "[PAD]" } } };
    for (const [files, first] of [[{}, "[CLS]"] as const, [named, "[PAD]"] as const]) {
      const all = { "tokenizer.json": wordPieceJson(own), "tokenizer_config.json": { do_lower_case: true }, ...files };
      const { metadata } = await convert(all, { rows: rowsOf(own) });
      for (const [key, mark] of Object.entries(marks)) {
        const id = piecesOf(own).indexOf(mark === "[CLS]" ? first : mark);
        expect(metadata[`tokenizer.ggml.${key}`]).toEqual({ u32: id });
      }
      expect(metadata["tokenizer.ggml.add_bos_token"]).toBeUndefined();
    }
  });

  test("SentencePiece's BPE gives the ids of its GGUF, with scores from the order of merges", async () => {
    const own = spmVocabulary();
    await expectSameIds(own, { "tokenizer.json": textJson(own) }, TEXTS);
  });

  // the tokenizers library gave these ids
  test.each([
    ["ab", [0, 9, 2]],
    ["ab  abc", [0, 9, 9, 7, 2]],
    [" cab ", [0, 4, 7, 8, 2]],
    ["xa", [0, 4, 3, 5, 2]],
    ["a b", [0, 10, 4, 6, 2]],
  ])("Unigram: %j has the ids of its tokenizer.json", async (text, ids) => {
    const { metadata } = await convert(
      { "tokenizer.json": unigramJson() },
      { rows: 12, config: { bos_token_id: 0, eos_token_id: 2 } },
    );
    const tokenizer = loadTokenizer(await written(metadata, "bert"), "unigram");
    expect([...tokenizer.encode(text, { addSpecial: true, parseSpecial: false })]).toEqual(ids);
  });

  test("Unigram keeps SentencePiece's charsmap, and refuses other normalizers", async () => {
    const normalizer = { type: "Precompiled", precompiled_charsmap: Buffer.from("map").toString("base64") };
    const { metadata } = await convert({ "tokenizer.json": { ...unigramJson(), normalizer } }, { rows: 12 });
    expect(metadata["tokenizer.ggml.precompiled_charsmap"]).toEqual(Uint8Array.from(Buffer.from("map")));
    const lower = { ...unigramJson(), normalizer: { type: "Lowercase" } };
    await expect(convert({ "tokenizer.json": lower }, { rows: 12 })).rejects.toThrow(
      'expected a normalizer with one map of characters, got {"type":"Lowercase"}',
    );
  });

  test("RobertaProcessing adds the begin and end tokens", async () => {
    const post = { type: "RobertaProcessing", sep: ["</s>", 2], cls: ["<s>", 0] };
    const { metadata } = await convert(
      { "tokenizer.json": { ...unigramJson(), post_processor: post } },
      { rows: 12, config: { bos_token_id: 0, eos_token_id: 2 } },
    );
    expect([metadata["tokenizer.ggml.add_bos_token"], metadata["tokenizer.ggml.add_eos_token"]]).toEqual([true, true]);
  });

  test.each([
    [{ type: "Foo", vocab: [] }, 'expected a model of type BPE, WordPiece or Unigram, got "Foo"'],
    [{ type: "Unigram", vocab: [["a"]] }, 'expected pieces with a score, got ["a"]'],
    [{ type: "Unigram", vocab: {} }, "expected a 'vocab' of at most 1048576 pieces, got {}"],
    [{ type: "Unigram", vocab: [], byte_fallback: true }, "expected Unigram without byte_fallback, got true"],
    [{ type: "BPE", vocab: {}, merges: [] }, "expected BPE on bytes or with byte_fallback"],
    [
      { type: "BPE", vocab: { a: 1, b: 1 }, merges: [], byte_fallback: true },
      'expected an id of its own for "b", got 1',
    ],
    [{ type: "BPE", vocab: { a: -1 }, merges: [], byte_fallback: true }, 'expected an id of its own for "a", got -1'],
    [
      { type: "BPE", vocab: { a: 0 }, merges: [["a"]], byte_fallback: true },
      'expected merges of two pieces, got ["a"]',
    ],
  ])("%j is refused", async (model, message) => {
    await expect(convert({ "tokenizer.json": { model } }, { rows: 9 })).rejects.toThrow(
      `folder: 'tokenizer.json': ${message}`,
    );
  });

  test("a pre-tokenizer without a name in GGUF is refused", async () => {
    const own = bpeMetadata(["a b"]);
    const json = { ...byteLevelJson(own, { pairs: true }), pre_tokenizer: { type: "Whitespace" } };
    const other = { type: "Split", pattern: { Regex: "(a+)+$" }, behavior: "Isolated" };
    const nested = { type: "Sequence", pretokenizers: [other, { type: "ByteLevel", use_regex: false }] };
    await expect(convert({ "tokenizer.json": json }, { rows: 400 })).rejects.toThrow(
      'unknown pre-tokenizer {"type":"Whitespace"}',
    );
    await expect(convert({ "tokenizer.json": { ...json, pre_tokenizer: nested } }, { rows: 400 })).rejects.toThrow(
      'the pre-tokenizer is unknown: "split (a+)+$"',
    );
  });
});

/** Pieces of the prose that merge from pairs of others. */
function spmVocabulary(): Metadata {
  const letters = [...new Set(`▁${PROSE.replaceAll(/\s/g, "")}`)];
  const merged = MERGES.map((merge) => merge.replace(" ", "").replaceAll("Ġ", "▁"));
  const pieces = merged.filter((piece) => !/[Ċ]/.test(piece) && !letters.includes(piece));
  return spmMetadata([...new Set([...pieces, ...letters])], SPECIAL);
}

describe("tokenizer.model:", () => {
  test("gives the ids of its GGUF, with the added tokens of the files beside it", async () => {
    const own = spmVocabulary();
    const added = Object.fromEntries(addedTokens(own).map(({ id, ...token }) => [String(id), token]));
    const files = {
      "tokenizer.model": sentencePieceModel(own),
      "tokenizer_config.json": { added_tokens_decoder: added },
    };
    const converted = await expectSameIds(own, files, TEXTS);
    expect(converted.get("tokenizer.ggml.bos_token_id")).toBe(1);
    expect(converted.get("tokenizer.ggml.eos_token_id")).toBe(2);
    expect(converted.get("tokenizer.ggml.padding_token_id")).toBeUndefined();
    expect(converted.get("tokenizer.ggml.add_space_prefix")).toBe(true);
    const { metadata } = await convert(
      { ...files, "tokenizer_config.json": { add_prefix_space: false } },
      { rows: 1000 },
    );
    expect(metadata["tokenizer.ggml.add_space_prefix"]).toBe(false); // Llama's
  });

  test("refuses Unigram", async () => {
    const files = { "tokenizer.model": sentencePieceModel(spmVocabulary(), 1) };
    await expect(convert(files, { rows: 1000 })).rejects.toThrow(
      "folder: 'tokenizer.model': expected a BPE model, got Unigram",
    );
  });

  test("a folder without any tokenizer is refused with the names of both files", async () => {
    await expect(convert({ "vocab.txt": "a" }, { rows: 9 })).rejects.toThrow(
      "folder: expected 'tokenizer.json' or 'tokenizer.model', got neither",
    );
  });

  test("gives a model or an AppError for any bytes", () => {
    const whole = Uint8Array.from(sentencePieceModel(spmMetadata(["a", "b", "ab"]))); // a Buffer's slices share its bytes
    const length = fc.oneof(fc.constant(whole.length), fc.nat(whole.length));
    const damaged = fc.tuple(fc.nat(whole.length - 1), fc.nat(255), length).map(([at, byte, end]) => {
      const bytes = whole.slice(0, Math.max(at + 1, end));
      bytes[at] = byte;
      return bytes;
    });
    let [read, refused] = [0, 0];
    fc.assert(
      fc.property(fc.oneof(damaged, fc.uint8Array({ maxLength: 200 })), (bytes) => {
        try {
          const { pieces, scores, types } = parseSentencePieceModel(bytes, "x");
          read++;
          expect([scores.length, types.length]).toEqual([pieces.length, pieces.length]);
        } catch (error) {
          refused++;
          expect(error).toBeInstanceOf(AppError);
          expect((error as AppError).message).toStartWith("x: 'tokenizer.model': expected ");
        }
      }),
      { numRuns: 2000 },
    );
    expect(Math.min(read, refused)).toBeGreaterThan(100);
  });
});

describe("published vocabularies:", () => {
  const open = (name: string): { metadata: Metadata; texts: string[] } => {
    const path = golden(`vocab/ggml-vocab-${name}.gguf`);
    const gguf = openGguf(path);
    gguf.close();
    return { metadata: gguf.metadata, texts: readFileSync(`${path}.inp`, "utf8").split("\n__ggml_vocab_test__\n") };
  };
  for (const name of ["gpt-2", "starcoder", "qwen2", "llama-bpe"]) {
    goldenTest(
      `${name}: tokenizer.json gives the ids of its GGUF`,
      async () => {
        const { metadata, texts } = open(name);
        await expectSameIds(metadata, { "tokenizer.json": byteLevelJson(metadata, { pairs: true }) }, texts);
      },
      60_000,
    );
  }
  goldenTest("bert-bge: tokenizer.json gives the ids of its GGUF", async () => {
    const { metadata, texts } = open("bert-bge");
    const config = { cls_token: "[CLS]", sep_token: "[SEP]", unk_token: "[UNK]" };
    await expectSameIds(
      metadata,
      { "tokenizer.json": wordPieceJson(metadata), "tokenizer_config.json": config },
      texts,
    );
  });
  for (const name of ["llama-spm", "phi-3"]) {
    goldenTest(
      `${name}: tokenizer.model and tokenizer.json give the ids of its GGUF`,
      async () => {
        const { metadata, texts } = open(name);
        const added = { added_tokens: addedTokens(metadata) };
        const model = sentencePieceModel(metadata);
        await expectSameIds(metadata, { "tokenizer.model": model, "tokenizer.json": { ...added, model: {} } }, texts);
        await expectSameIds(metadata, { "tokenizer.json": textJson(metadata) }, texts);
      },
      60_000,
    );
  }
});

test("Gemma 4 uses the merges of tokenizer.json beside `tokenizer.model`, and shows the tokens of its calls", async () => {
  const vocab = Object.fromEntries(["<unk>", "a", "b", "ab", "<|channel>", "<0x0A>"].map((piece, id) => [piece, id]));
  const model = { type: "BPE", unk_token: "<unk>", vocab, merges: [["a", "b"]], byte_fallback: true };
  const added = [{ id: 4, content: "<|channel>", special: true }];
  const json = { model, normalizer: { type: "Replace", pattern: { String: " " }, content: "▁" }, added_tokens: added };
  const files = { "tokenizer.json": json, "tokenizer.model": new Uint8Array([1]) };
  const { metadata } = await convert(files, { rows: 6, config: { bos_token_id: 0 }, architecture: gemma4 });
  const read = await written(metadata, "gemma4");
  expect(read.get("tokenizer.ggml.model")).toBe("gemma4");
  expect(read.get("tokenizer.ggml.merges")).toEqual(["a b"]);
  expect(Array.from(read.get("tokenizer.ggml.token_type") as Int32Array)).toEqual([2, 1, 1, 1, 4, 6]);
  const { encode } = loadTokenizer(read, "gemma4");
  expect([...encode("ab\nb", { addSpecial: false, parseSpecial: false })]).toEqual([3, 5, 2]);
});
