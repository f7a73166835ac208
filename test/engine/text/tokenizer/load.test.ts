import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Metadata, MetadataValue } from "../../../../src/engine/formats/gguf/gguf.ts";
import { AppError } from "../../../../src/base/errors.ts";
import { loadTokenizer, type LoadedTokenizer } from "../../../../src/engine/text/tokenizer/load.ts";
import { anyCharacter } from "../../../characters.ts";
import {
  bpeMetadata,
  makeProse,
  PARSED,
  PLAIN,
  spmMetadata,
  trainMerges,
  TYPE,
  WHOLE,
  wpmMetadata,
} from "./fixtures.ts";
import { cpuMs } from "../../../cpu-time.ts";

const load = (metadata: Metadata): LoadedTokenizer => loadTokenizer(metadata, "m.gguf");
const piecesOf = (tokenizer: LoadedTokenizer, ids: Iterable<number>): string =>
  Array.from(ids, (id) => tokenizer.vocabulary!.pieces[id]).join("|");
const show = (
  tokenizer: LoadedTokenizer,
  text: string,
  options = PLAIN as typeof WHOLE | typeof PLAIN | typeof PARSED,
): string => piecesOf(tokenizer, tokenizer.encode(text, options));

const MERGES = ["Ġ t", "h e", "Ġt he", "l l", "e ll", "h ell", "hell o", "Ġ w"];
const SPECIAL = [
  ["<|begin|>", TYPE.control],
  ["<|im_end|>", TYPE.normal],
  ["<tool>", TYPE.userDefined],
  ["<tool>x", TYPE.userDefined],
  ["<|pad|>", TYPE.unknown],
] as const;

test("eos_token_ids end an answer too, and a number outside the vocabulary is an error", () => {
  const ends = (ids: Int32Array) => load(bpeMetadata(MERGES, SPECIAL, { "tokenizer.ggml.eos_token_ids": ids }));
  const plain = load(bpeMetadata(MERGES, SPECIAL, {})).endOfGeneration;
  expect([plain.has(3), plain.has(5)]).toEqual([false, false]);
  expect([...ends(Int32Array.of(3, 5)).endOfGeneration].sort()).toEqual([...plain, 3, 5].sort());
  expect(() => ends(Int32Array.of(-1))).toThrow("metadata 'tokenizer.ggml.eos_token_ids': expected ids from 0 to");
});

test("suppressed tokens are distinct ids of the vocabulary, and never all of it", () => {
  const suppressed = (value: MetadataValue) =>
    load(bpeMetadata(MERGES, SPECIAL, { "tokenizer.ggml.suppress_tokens": value })).suppressed;
  expect([...suppressed(Int32Array.of(5, 3, 5, -1, 1 << 30))]).toEqual([5, 3]);
  expect([...load(bpeMetadata(MERGES, SPECIAL, {})).suppressed]).toEqual([]);
  expect(() => suppressed(Int32Array.from({ length: 1000 }, (_, i) => i))).toThrow("expected fewer than all");
  expect(() => suppressed(Float32Array.of(1.5))).toThrow("'tokenizer.ggml.suppress_tokens': expected ids, got 1.5");
  expect(() => suppressed("80")).toThrow("tokenizer.ggml.suppress_tokens");
});

test("BPE joins the earliest merge first and leaves unknown words as bytes", () => {
  const tokenizer = load(bpeMetadata(MERGES, [], { "tokenizer.ggml.pre": "gpt-2" }));
  expect(show(tokenizer, "hello the whell é")).toBe("he|ll|o|Ġthe|Ġw|he|ll|Ġ|Ã|©");
});

test("merges of pieces outside the vocabulary are ignored", () => {
  const merges = ["a b", "b c", "ab c"];
  const more = { "tokenizer.ggml.merges": ["no piece", "a nothing", ...merges] };
  expect(show(load(bpeMetadata(merges, [], more)), "abcab")).toBe(show(load(bpeMetadata(merges)), "abcab"));
});

test("the first of two equal merges counts", () => {
  const rule = { "tokenizer.ggml.pre": "gpt-2" };
  expect(show(load(bpeMetadata(["a b", "b c", "a b"], [], rule)), "abc")).toBe("ab|c");
});

test("Gemma 4 merges text with ▁ for spaces, takes a run of line feeds whole, and falls back to bytes", () => {
  const tokens = ["<bos>", "▁", "a", "b", "▁a", ">", ">▁", ">▁b", "\n\n", "<0xC3>", "<0xA9>", "\n"];
  const tokenizer = load(
    new Map<string, MetadataValue>([
      ["tokenizer.ggml.model", "gemma4"],
      ["tokenizer.ggml.tokens", tokens],
      ["tokenizer.ggml.token_type", Int32Array.from([3, 1, 1, 1, 1, 1, 1, 1, 1, 6, 6, 1])],
      ["tokenizer.ggml.merges", ["▁ a", "> ▁", ">▁ b"]],
      ["tokenizer.ggml.bos_token_id", 0],
      ["tokenizer.ggml.add_bos_token", false],
    ]),
  );
  expect(show(tokenizer, "b a> b\n\né\n", WHOLE)).toBe("<bos>|b|▁a|>▁b|\n\n|<0xC3>|<0xA9>|\n");
  expect(tokenizer.detokenize(tokenizer.encode(" a> b\n\né", PLAIN))).toBe(" a> b\n\né");
});

test("a lone surrogate is encoded as U+FFFD", () => {
  expect(show(load(spmMetadata(["▁", "\uFFFD"])), "\uD800")).toBe("▁|\uFFFD");
});

test("a word that is a piece is one token if its pre-tokenizer ignores merges, and is merged otherwise", () => {
  const merges = ["a b", "b c", "ab c"]; // "bcd" is a piece that no merge makes
  const special = [["bcd", TYPE.normal]] as const;
  expect(show(load(bpeMetadata(merges, special)), "bcd")).toBe("bcd");
  expect(show(load(bpeMetadata(merges, special, { "tokenizer.ggml.pre": "gpt-2" })), "bcd")).toBe("bc|d");
});

test("user-defined tokens are always recognised, control and unknown ones only with parseSpecial, the longest first", () => {
  const tokenizer = load(bpeMetadata(["< |"], SPECIAL));
  expect(show(tokenizer, "a<tool>xb<|im_end|>")).toBe("a|<tool>x|b|<||i|m|_|e|n|d|||>");
  expect(show(tokenizer, "<tool>a<|im_end|><|pad|>", PARSED)).toBe("<tool>|a|<|im_end|>|<|pad|>");
  expect(show(tokenizer, "<tool><tool>x<tool>")).toBe("<tool>|<tool>x|<tool>");
});

test("BOS and EOS are added if the file or the family says so, and only with addSpecial", () => {
  const ids = { "tokenizer.ggml.bos_token_id": 256, "tokenizer.ggml.eos_token_id": 257 };
  const quiet = load(bpeMetadata([], SPECIAL, ids));
  expect(show(quiet, "a", WHOLE)).toBe("a");
  const loud = load(
    bpeMetadata([], SPECIAL, { ...ids, "tokenizer.ggml.add_bos_token": true, "tokenizer.ggml.add_eos_token": true }),
  );
  expect(show(loud, "a", WHOLE)).toBe("<|begin|>|a|<|im_end|>");
  expect(show(loud, "", WHOLE)).toBe("<|begin|>|<|im_end|>");
  expect(show(loud, "a", PARSED)).toBe("a");
  expect(show(load(spmMetadata(["▁", "a"])), "a", WHOLE)).toBe("<s>|▁|a");
  expect(show(load(wpmMetadata(["▁a"])), "a", WHOLE)).toBe("[CLS]|▁a|[SEP]");
});

test("a known end of turn ends the generation, and gives no text", () => {
  const tokenizer = load(bpeMetadata([], SPECIAL));
  const id = tokenizer.encode("<|im_end|>", PARSED)[0]!;
  expect([...tokenizer.endOfGeneration]).toEqual([id]);
  expect(tokenizer.detokenize([97, id])).toBe("a");
  expect(tokenizer.detokenize([id], { special: true })).toBe("<|im_end|>");
});

test("Harmony's <|end|> ends a message, not the generation; a plain <|end|> does", () => {
  const control = (...pieces: string[]) => pieces.map((piece) => [piece, TYPE.control] as const);
  const harmony = load(bpeMetadata([], control("<|end|>", "<|return|>", "<|call|>", "<|channel|>")));
  expect([...harmony.endOfGeneration]).toEqual([257, 258]);
  expect(harmony.detokenize([256, 259])).toBe("<|end|><|channel|>");
  expect([...load(bpeMetadata([], control("<|end|>"))).endOfGeneration]).toEqual([256]);
});

test("phi-3 swallows white space after a special token", () => {
  const special = [["<|user|>", TYPE.control]] as const;
  const phi = load(spmMetadata(["▁", "a"], special, { "general.name": "Phi-3 mini" }));
  expect(show(phi, "<|user|>\n  a", PARSED)).toBe("<|user|>|▁|a");
  expect(show(load(spmMetadata(["▁", "a"], special)), "<|user|>\na", PARSED)).toBe("<|user|>|▁|<0x0A>|a");
});

test("SentencePiece joins the best score first, falls back to bytes, and puts a space before a text", () => {
  const tokenizer = load(spmMetadata(["▁", "a", "b", "c", "bc", "ab", "▁ab"]));
  expect(show(tokenizer, "abc é")).toBe("▁|a|bc|▁|<0xC3>|<0xA9>");
  expect(show(tokenizer, "ab")).toBe("▁ab");
  expect(tokenizer.detokenize(tokenizer.encode("ab é", PLAIN))).toBe("ab é");
  const bare = load(spmMetadata(["▁", "a", "b"], [], { "tokenizer.ggml.add_space_prefix": false }));
  expect(show(bare, "a b")).toBe("a|▁|b");
  expect(bare.detokenize(bare.encode(" a", PLAIN))).toBe(" a");
});

test("SentencePiece pieces that span a space are found", () => {
  const tokenizer = load(spmMetadata(["▁", "a", "b", "a▁", "a▁b", "▁b"]));
  expect(show(tokenizer, "a b")).toBe("▁|a▁b");
});

test("two characters without pieces join to a piece", () => {
  expect(show(load(spmMetadata(["▁", "xy"])), "xy x")).toBe("▁|xy|▁|<0x78>");
});

test("WordPiece takes the longest pieces, folds case and accents, and makes a whole word unknown", () => {
  const tokenizer = load(wpmMetadata(["▁un", "aff", "able", "▁!", "▁中", "▁ca", "fe"]));
  expect(show(tokenizer, "UNaffable!  Café中 unx cafe\u0301")).toBe("▁un|aff|able|▁!|▁ca|fe|▁中|[UNK]|▁ca|fe");
  const strict = load(wpmMetadata(["▁Ca", "fé"], { "tokenizer.ggml.normalizer.lowercase": false }));
  expect(show(strict, "Café café")).toBe("▁Ca|fé|[UNK]");
});

test("WordPiece normalises every script as the models' own tokenizer does", () => {
  const tokenizer = load(wpmMetadata(["▁\u1112", "\u1161", "\u11ab", "▁\u0915", "\u093e", "▁σ", "σ", "▁a", "a"]));
  expect(show(tokenizer, "한")).toBe("▁\u1112|\u1161|\u11ab"); // a syllable is its letters
  expect(show(tokenizer, "\u0915\u093e\u094d")).toBe("▁\u0915|\u093e"); // a vowel sign stays, a mark does not
  expect(show(tokenizer, "ΣΣ")).toBe("▁σ|σ"); // also at the end of a word
  expect(show(tokenizer, "a\u000ba\fa\u0085a a")).toBe("▁a|a|a|a|▁a"); // controls vanish
  expect(show(tokenizer, `${"a".repeat(100)} ${"a".repeat(101)} a`)).toBe(`▁a|${"a|".repeat(99)}[UNK]|▁a`);
});

test("byte-level BPE decodes to the text it encoded", () => {
  const tokenizer = load(bpeMetadata(trainMerges(makeProse(5000), 300), SPECIAL));
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter, maxLength: 200 }), fc.boolean(), (text, parseSpecial) => {
      const ids = tokenizer.encode(text, { addSpecial: false, parseSpecial });
      expect(tokenizer.detokenize(ids, { special: true })).toBe(text.toWellFormed());
    }),
    { seed: 2, numRuns: 1000 },
  );
});

test("200,000 equal characters and 500,000 of prose take time linear in their length", () => {
  const merges = trainMerges(makeProse(5000), 300);
  const runs = ["a a", "aa aa", "aaaa aaaa", "Ġ Ġ", "ĠĠ ĠĠ"];
  const models = [
    bpeMetadata([...runs, ...merges]),
    spmMetadata(["▁", "a", "aa", "aaaa", "▁▁", "▁a"]),
    wpmMetadata(["▁a", "a"]),
  ];
  for (const tokenizer of models.map(load)) {
    const start = cpuMs();
    for (const unit of ["a", " ", "7", "🙂", "\n"]) tokenizer.encode(unit.repeat(200_000), PARSED);
    expect(tokenizer.encode(makeProse(500_000), PARSED).length).toBeGreaterThan(50_000);
    expect(cpuMs() - start).toBeLessThan(40_000); // about 0.3 s; quadratic merging takes minutes
  }
}, 120_000);

test("a model without a tokenizer has its vocabulary's size, and refuses text", () => {
  const none: Metadata = new Map<string, MetadataValue>([
    ["general.architecture", "llama"],
    ["tokenizer.ggml.model", "none"],
    ["llama.vocab_size", 128],
  ]);
  const tokenizer = load(none);
  expect([tokenizer.family, tokenizer.vocabSize, tokenizer.detokenize([1])]).toEqual(["none", 128, ""]);
  expect(() => tokenizer.encode("a", PLAIN)).toThrow("m.gguf: expected ids");
  // the text of a prompt that is ids
  expect(tokenizer.encode([{ text: "", control: false }], PLAIN)).toEqual(new Int32Array(0));
});

const HOSTILE: readonly (readonly [what: string, metadata: Metadata, message: RegExp])[] = [
  ["an unknown model", new Map([["tokenizer.ggml.model", "t6"]]), /tokenizer\.ggml\.model'.*gpt2.*got 't6'/],
  ["a model named after a method", new Map([["tokenizer.ggml.model", "constructor"]]), /got 'constructor'/],
  ["no model", new Map(), /tokenizer\.ggml\.model'/],
  ["an unknown pre-tokenizer", bpeMetadata([], [], { "tokenizer.ggml.pre": "x" }), /tokenizer\.ggml\.pre'.*got 'x'/],
  ["no pieces", bpeMetadata([], [], { "tokenizer.ggml.tokens": [] }), /tokenizer\.ggml\.tokens'.*got 0/],
  ["pieces of a wrong type", bpeMetadata([], [], { "tokenizer.ggml.tokens": 3 }), /tokenizer\.ggml\.tokens'/],
  ["two equal pieces", bpeMetadata([], [["a", TYPE.normal]]), /each piece once, got "a" as 97 and 256/],
  ["too few types", bpeMetadata([], [], { "tokenizer.ggml.token_type": new Int32Array(3) }), /token_type'.*256.*got 3/],
  [
    "too many scores",
    spmMetadata(["▁"], [], { "tokenizer.ggml.scores": new Float32Array(999) }),
    /scores'.*260.*got 999/,
  ],
  ["a piece without end", bpeMetadata([], [["x".repeat(9000), TYPE.normal]]), /at most 8192, got 9000/],
  [
    "a mass of special tokens",
    bpeMetadata(
      [],
      Array.from({ length: 400 }, (_, i) => [`${i}${"x".repeat(8000)}`, TYPE.control] as const),
    ),
    /special tokens of 2097152 units together, got 32/,
  ],
  ["a merge without a space", bpeMetadata([], [], { "tokenizer.ggml.merges": ["ab"] }), /merges'.*got 'ab' at 0/],
  [
    "an id out of range",
    bpeMetadata([], [], { "tokenizer.ggml.eos_token_id": 256 }),
    /eos_token_id'.*0 to 255, got 256/,
  ],
  ["an id that is a fraction", bpeMetadata([], [], { "tokenizer.ggml.bos_token_id": 1.5 }), /bos_token_id'.*got 1\.5/],
  ["a BOS to add, but none named", bpeMetadata([], [], { "tokenizer.ggml.add_bos_token": true }), /bos_token_id'/],
];

for (const [what, metadata, message] of HOSTILE) {
  test(`${what} is an error that names the file and the key`, () => {
    let thrown: unknown;
    try {
      load(metadata);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(AppError);
    expect(["bad_file", "unsupported"]).toContain((thrown as AppError).code);
    expect((thrown as AppError).message).toStartWith("m.gguf: metadata '");
    expect((thrown as AppError).message).toMatch(message);
  });
}

test("random metadata is a tokenizer or an AppError", () => {
  const texts = fc.array(fc.string({ maxLength: 3 }), { maxLength: 6 });
  const value: fc.Arbitrary<MetadataValue> = fc.oneof(
    fc.integer({ min: -2, max: 300 }),
    fc.boolean(),
    fc.string(),
    texts,
    fc.array(fc.integer({ min: -1, max: 9 }), { maxLength: 300 }).map((list) => Int32Array.from(list)),
    fc.constant(new Float32Array(256).fill(NaN)),
  );
  const base = [bpeMetadata(["a b"], SPECIAL), spmMetadata(["▁", "a", "▁a"]), wpmMetadata(["▁a"])];
  const keys = [...new Set(base.flatMap((metadata) => [...metadata.keys()]))].concat("tokenizer.ggml.eot_token_id");
  fc.assert(
    fc.property(
      fc.constantFrom(...base),
      fc.dictionary(fc.constantFrom(...keys), value, { maxKeys: 3 }),
      (metadata, change) => {
        try {
          const tokenizer = load(new Map([...metadata, ...Object.entries(change)]));
          if (tokenizer.family !== "none") tokenizer.detokenize(tokenizer.encode("a ab\n<tool>é", WHOLE));
        } catch (error) {
          expect(error).toBeInstanceOf(AppError);
        }
      },
    ),
    { seed: 4, numRuns: 1500 },
  );
});
