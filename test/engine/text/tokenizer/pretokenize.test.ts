import { expect, test } from "bun:test";
import fc from "fast-check";
import { findPreTokenizer, makeSplit, PRE_TOKENIZERS } from "../../../../src/engine/text/tokenizer/pretokenize.ts";
import { cpuMs } from "../../../cpu-time.ts";
import { drawn } from "../../../seed.ts";

const split = (name: string, text: string): string[] => makeSplit(findPreTokenizer(name))(text);

// Words checked with llama.cpp (llama_tokenize, with a vocabulary that shows the borders).
const CASES: readonly (readonly [pre: string, text: string, words: string])[] = [
  ["gpt-2", "Hello  world's 123\t\tx", "Hello| | world|'s| 123|\t|\t|x"],
  ["llama-bpe", "It'S 12345 a!\n\n  b", "It|'S| |123|45| a|!\n\n| | b"],
  ["llama-bpe", "a \uFEFF!\u0085b", "a| \uFEFF!|\u0085b"],
  ["qwen2", "x12 ~~é", "x|1|2| ~~|é"],
  ["qwen35", "e\u0301t 1", "e\u0301t| |1"],
  ["deepseek-llm", "a b\n中文 12", "a| b|\n|中文| |12"],
  ["deepseek-llm", "a  🙂  7 \u3000", "a|  🙂  |7| \u3000"],
  ["deepseek-coder", "a\u2003中.b", "a|\u2003|中|.|b"],
  ["deepseek-v3", "$abc 1234 中a ~ ~", "$abc| |123|4| |中|a| ~| ~"],
  ["falcon", "a+b 12345", "a|+|b| |123|45"],
  ["starcoder", "v12 x", "v|1|2| x"],
  ["tekken", "camelCase ABc 12", "camel|Case| ABc| |1|2"],
  ["gpt-4o", "HTTPServer's /x\n", "HTTPServer's| /|x|\n"],
  ["bloom", "Hi, you!", "Hi|,| you|!"],
  ["viking", "a1b, c", "a|1|b|,| c"],
  ["chatglm-bpe", "a\r\n\r\n b", "a|\r\n\r\n| b"],
  ["superbpe", "a 1234567", "a |1|234|567"],
  ["tiny_aya", "x1234567", "x|1|234|567"],
  ["afmoe", "no 12345ไทย", "no| |12|345|ไ|ทย"],
  ["kimi-k2", "漢字abc's 1", "漢字|abc's| |1"],
  ["jais-2", "a" + " ".repeat(7) + "b", "a|    |  | b"],
  ["exaone-moe", "a b c 1", "a b c| |1"],
  ["gemma4", "a b\n\nc", "a b|\n\n|c"],
  ["bailingmoe", "a \n\nb !\n", "a| \n\n|b| !\n"],
  ["ufakzeka", "Ali'ye", "Ali|'ye"],
];

for (const [pre, text, words] of CASES) {
  test(`${pre} cuts ${JSON.stringify(text.slice(0, 24))} as llama.cpp does`, () => {
    expect(split(pre, text)).toEqual(words.split("|"));
  });
}

test("the words of a text join to the text under every rule", () => {
  const letters = fc.constantFrom(..."aZé中1٣ \t\n\r'.,~$한ก\u2003\u0301🙂", "'s", "123", "  ");
  const texts = fc.array(fc.oneof(letters, fc.string({ unit: "grapheme" }))).map((parts) => parts.join(""));
  for (const rule of PRE_TOKENIZERS) {
    const cut = makeSplit(rule);
    fc.assert(
      fc.property(texts, (text) => cut(text).join("") === text && !cut(text).includes("")),
      { seed: 11, numRuns: 60 },
    );
  }
});

/** Rules whose time a run measures. */
const slowly = drawn("time of rules", PRE_TOKENIZERS, Math.ceil(PRE_TOKENIZERS.length / 3));

test("60,000 equal characters are split in linear time by a third of the rules", () => {
  const hard = ["a", "A", "aA", " ", "\n", " \n", "7", "é", "e\u0301", "漢", "🙂", "'", "'s", "a ", "\t"];
  for (const rule of slowly) {
    const cut = makeSplit(rule);
    const start = cpuMs();
    for (const unit of hard) cut(unit.repeat(60_000 / unit.length) + "x");
    expect(cpuMs() - start).toBeLessThan(20_000); // 15 texts; a quadratic pattern takes minutes
  }
});

test("200,000 spaces are split in linear time by a third of the rules, with any text behind them", () => {
  for (const rule of slowly) {
    const cut = makeSplit(rule);
    const start = cpuMs();
    for (const end of ["", "7", "a", "漢", "🙂", "\u0301"]) cut(`x${" ".repeat(200_000)}${end}`);
    expect(cpuMs() - start).toBeLessThan(10_000); // about 0.1 s; a quadratic pattern takes half a minute for one
  }
});

test("no pre-tokenizer name belongs to two rules", () => {
  const names = PRE_TOKENIZERS.flatMap((rule) => rule.names);
  expect(new Set(names).size).toBe(names.length);
});

test("an unknown pre-tokenizer is an error that lists the known ones", () => {
  expect(() => findPreTokenizer("gpt-9")).toThrow(/afmoe, bailingmoe.*youtu\), got 'gpt-9'/);
});
