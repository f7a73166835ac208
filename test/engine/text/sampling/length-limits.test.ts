/** Strings whose length no grammar of a usual size can count. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  makeGrammarCompiler,
  type Format,
  type GrammarCompiler,
  type GrammarMatcher,
  type GrammarVocabulary,
} from "../../../../src/engine/text/sampling/grammar.ts";
import { byteCharacters } from "../../../../src/engine/text/tokenizer/byte-alphabet.ts";
import { LengthLimiter, tokenTextsOf } from "../../../../src/engine/text/sampling/length-limits.ts";
import { schemaGrammar } from "../../../../src/engine/text/sampling/schema/compile.ts";
import { testRng } from "../../../seed.ts";
import { misfit } from "./validator.ts";

const LONG = [
  "the",
  " quick",
  "     ",
  'lazy","',
  "naïve",
  "\\n",
  "\\\\",
  "\\u00",
  "e9",
  "x".repeat(40),
  "日本語",
  "😀",
  '":"',
  '"}',
];
const ASCII = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i));
const alphabet = byteCharacters();
const bytesOf = (text: string): string => Array.from(new TextEncoder().encode(text), (byte) => alphabet[byte]).join("");
/** Pieces whose bytes begin or end within a character. */
const PARTIAL = [...bytesOf("é中"), `${bytesOf("a")}${alphabet[0xc3]}`, `${alphabet[0xa9]}${bytesOf("b")}`];

const vocabularyOf = (tokens: readonly string[], kind: GrammarVocabulary["kind"]): GrammarVocabulary => ({
  tokens: [...tokens, "<end>"],
  kind,
  prependSpace: false,
  vocabSize: tokens.length + 1,
  stopIds: [tokens.length],
});
const VOCABULARIES: Readonly<Record<string, GrammarVocabulary>> = {
  raw: vocabularyOf([...ASCII, ...LONG], "raw"),
  byte_level: vocabularyOf([...[...ASCII, ...LONG].map(bytesOf), ...PARTIAL, alphabet[1]!, alphabet[2]!], "byte_level"),
  byte_fallback: vocabularyOf(
    [...[...ASCII, ...LONG].map((text) => text.replaceAll(" ", "▁")), "<0x01>", "<0x02>", "<0x0A>", "<0xC3>", "<0xA9>"],
    "byte_fallback",
  ),
};

/** The bytes of an answer by a model that likes these tokens above all others that may follow. */
async function answerOf(
  matcher: GrammarMatcher,
  vocabulary: GrammarVocabulary,
  weigh: (token: string, step: number) => number,
): Promise<string> {
  const bytes: number[] = [];
  const byteOf = new Map(alphabet.map((character, byte) => [character, byte]));
  for (let step = 0; step < 3000 && !(await matcher.isOver()); step++) {
    const mask = (await matcher.mask())!;
    let [best, most] = [-1, -Infinity];
    for (let id = 0; id < vocabulary.vocabSize; id++) {
      if (((mask[id >> 5]! >>> (id & 31)) & 1) === 0) continue;
      const weight = weigh(vocabulary.tokens[id]!, step);
      if (weight > most) [best, most] = [id, weight];
    }
    if (best < 0) throw new Error(`no token may follow ${Buffer.from(bytes).toString()}`);
    if (vocabulary.stopIds.includes(best)) break;
    if (!matcher.accept(best)) throw new Error(`token ${best} was in the mask, but is not accepted`);
    const token = vocabulary.tokens[best]!;
    const [, hex] = /^<0x(..)>$/.exec(token) ?? [];
    if (vocabulary.kind === "byte_level") for (const character of token) bytes.push(byteOf.get(character)!);
    else if (hex !== undefined) bytes.push(Number.parseInt(hex, 16));
    else bytes.push(...new TextEncoder().encode(token.replaceAll("▁", " ")));
  }
  matcher.dispose();
  return Buffer.from(bytes).toString();
}

const property = (...given: readonly object[]): Record<string, unknown> => ({
  type: "object",
  properties: Object.fromEntries(given.map((schema, i) => [`p${i}`, schema])),
  required: given.map((_, i) => `p${i}`),
  additionalProperties: false,
});
const SCHEMAS: Readonly<Record<string, Record<string, unknown>>> = {
  "at most 40": property({ type: "string", maxLength: 40 }),
  "at most 300": property({ type: "string", maxLength: 300 }),
  "60 to 70": property({ type: "string", minLength: 60, maxLength: 70 }),
  "at least 60": property({ type: "string", minLength: 60 }),
  several: property({ type: "string", maxLength: 50 }, { type: "string", maxLength: 90 }, { type: "string" }),
  "a list": property({
    type: "array",
    minItems: 2,
    maxItems: 3,
    items: { type: "string", minLength: 34, maxLength: 64 },
  }),
  "a choice": property({ anyOf: [{ type: "string", maxLength: 100 }, { type: "integer" }] }),
};

describe.each(Object.entries(VOCABULARIES))("%s tokens", (_, vocabulary) => {
  let compiler: GrammarCompiler;
  beforeAll(() => void (compiler = makeGrammarCompiler(vocabulary)));
  afterAll(() => compiler.dispose());
  const ask = async (format: Format, weigh: (token: string, step: number) => number): Promise<string> =>
    answerOf(await compiler.matcher(format), vocabulary, weigh);

  test.each(Object.keys(SCHEMAS))("random answers have lengths of %s", async (name) => {
    const { float } = testRng(`lengths of ${name}, ${vocabulary.kind}`);
    for (let run = 0; run < 6; run++) {
      const text = await ask(SCHEMAS[name]!, (token) => float() * 4 + (/^[",}\]]/.test(token) ? 1.5 * (run % 3) : 0));
      expect([text, misfit(JSON.parse(text), SCHEMAS[name]!)]).toEqual([text, undefined]);
    }
  });

  test("a model that would never end a string reaches its limit, whatever it likes", async () => {
    for (const liked of ["x".repeat(40), "the", "x", "\\n", "\\\\", "日本語"]) {
      const spelt = vocabulary.kind === "byte_level" ? bytesOf(liked) : liked;
      const text = await ask(SCHEMAS["at most 300"]!, (token) => (token === spelt ? 2 : token.startsWith("x") ? 1 : 0));
      const { p0 } = JSON.parse(text) as { p0: string };
      expect([...p0].length).toBe(300);
    }
  });

  test("an escape that the next token ends counts as one character", async () => {
    const begun = '{"p0":"';
    const text = await ask(SCHEMAS["at most 40"]!, (token, step) => {
      if (step < begun.length) return token === begun[step] ? 1 : 0;
      return token === ((step - begun.length) % 2 === 0 ? "\\" : "the") ? 2 : token === "t" ? 1 : 0;
    });
    expect(JSON.parse(text)).toEqual({ p0: `${"\the".repeat(13)}\t` });
  });

  test("a model that would end each string at once reaches the least length", async () => {
    const text = await ask(SCHEMAS["60 to 70"]!, (token) => (token.startsWith('"') ? 2 : token === "a" ? 1 : 0));
    expect(JSON.parse(text)).toEqual({ p0: "a".repeat(60) });
  });

  test("a string that begins before the grammar takes over is counted whole", async () => {
    const grammar = { text: schemaGrammar(SCHEMAS["at most 40"]!).text, closes: true };
    const matcher = await compiler.begin(grammar, '{"p0":"é\\n34567');
    const text = await answerOf(matcher!, vocabulary, (token) => (token === "x" ? 2 : /^["}]$/.test(token) ? 1 : 0));
    expect(text).toBe(`${"x".repeat(33)}"}`);
  });

  test("a token that the limit refuses is not accepted", async () => {
    const matcher = await compiler.matcher(SCHEMAS["at most 40"]!);
    const idOf = (text: string): number => vocabulary.tokens.indexOf(text);
    for (const character of '{"p0":"a') expect(matcher.accept(idOf(character))).toBe(true);
    expect(matcher.accept(idOf("x".repeat(40)))).toBe(false);
    expect(matcher.accept(idOf("x"))).toBe(true);
    matcher.dispose();
  });
});

test("free text, in which a grammar accepts all characters, has no limits", () => {
  const texts = tokenTextsOf(VOCABULARIES["raw"]!);
  const limiter = new LengthLimiter([{ min: 0, max: 40 }], texts, () => true);
  limiter.take(Buffer.from("x".repeat(100)));
  const mask = new Int32Array(8).fill(-1);
  limiter.apply(mask);
  expect([...mask]).toEqual(Array<number>(8).fill(-1));
});

test("the marks of the grammar are no tokens of an answer", async () => {
  for (const name of ["byte_level", "byte_fallback"]) {
    const vocabulary = VOCABULARIES[name]!;
    const compiler = makeGrammarCompiler(vocabulary);
    const matcher = await compiler.matcher(SCHEMAS["at most 300"]!);
    const marks = name === "byte_level" ? [alphabet[1]!, alphabet[2]!] : ["<0x01>", "<0x02>"];
    for (const character of '{"p0":"') matcher.accept(vocabulary.tokens.indexOf(character));
    const mask = (await matcher.mask())!;
    for (const id of marks.map((mark) => vocabulary.tokens.indexOf(mark)))
      expect((mask[id >> 5]! >>> (id & 31)) & 1).toBe(0);
    matcher.dispose();
    compiler.dispose();
  }
});
