import { expect, test } from "bun:test";
import fc from "fast-check";
import { describeToken, makeAnswerTexts, type ChosenLogprob } from "../../../src/engine/batching/answer-text.ts";
import { loadTokenizer } from "../../../src/engine/text/tokenizer/load.ts";
import { bpeMetadata, TYPE } from "../text/tokenizer/fixtures.ts";
import { byteTokenizer, END, VOCAB } from "./fakes.ts";

const chosen = (id: number): ChosenLogprob => ({ id, token: String(id), bytes: [id], logprob: -id, top: [] });

/** Feeds bytes one token each; returns the text, and the ids whose log-probabilities came with it. */
function run(text: string, stops: readonly string[] = []): { text: string; ids: number[] }[] {
  const answer = makeAnswerTexts(byteTokenizer)({ stops });
  const out: { text: string; ids: number[] }[] = [];
  const add = ({
    text: more,
    logprobs = [],
  }: {
    text: string;
    logprobs?: readonly ChosenLogprob[] | undefined;
  }): void => {
    if (more !== "" || logprobs.length > 0) out.push({ text: more, ids: logprobs.map(({ bytes }) => bytes[0]!) });
  };
  for (const id of new TextEncoder().encode(text)) {
    const piece = answer.push(id, chosen(id));
    add(piece);
    if (piece.stop !== undefined) return out;
  }
  add(answer.end());
  return out;
}

const bytes = (text: string): number[] => [...new TextEncoder().encode(text)];

test("the tokens of a character are reported with the character", () => {
  expect(run("aé€")).toEqual([
    { text: "a", ids: [97] },
    { text: "é", ids: bytes("é") },
    { text: "€", ids: bytes("€") },
  ]);
});

test("tokens that may begin a stop string are reported once they cannot", () => {
  expect(run("ab</c", ["</s>"])).toEqual([
    { text: "a", ids: [97] },
    { text: "b", ids: [98] },
    { text: "</c", ids: bytes("</c") },
  ]);
});

test("the tokens of a stop string are not reported", () => {
  expect(run("ab</s>c", ["</s>"])).toEqual([
    { text: "a", ids: [97] },
    { text: "b", ids: [98] },
  ]);
});

test("the end of an answer reports text that was held back with its tokens, even half a character", () => {
  expect(run("a<", ["</s>"])).toEqual([
    { text: "a", ids: [97] },
    { text: "<", ids: [60] },
  ]);
  const answer = makeAnswerTexts(byteTokenizer)({ stops: [] });
  expect(answer.push(0xc3, chosen(0xc3))).toMatchObject({ text: "", logprobs: undefined });
  expect(answer.end()).toEqual({ text: "\uFFFD", logprobs: [chosen(0xc3)] });
});

test("a stop string that begins inside a token keeps that token, whose beginning was shown", () => {
  const words = { ...byteTokenizer, bytesOf: (id: number) => new TextEncoder().encode(["one EN", "D two"][id]) };
  const answer = makeAnswerTexts(words)({ stops: ["END"] });
  expect(answer.push(0, chosen(0))).toMatchObject({ text: "one ", logprobs: undefined });
  expect(answer.push(1, chosen(1))).toMatchObject({ text: "", logprobs: [chosen(0)], stop: "END" });
});

test("without stop strings every token is reported once, in order, with the text of its bytes", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme", maxLength: 30 }), (text) => {
      const pieces = run(text);
      expect(pieces.flatMap(({ ids }) => ids)).toEqual(bytes(text));
      for (const { text: part, ids } of pieces) expect(ids).toEqual(bytes(part));
    }),
    { seed: 5, numRuns: 300 },
  );
});

test("a token is described by its text, its bytes and its share of the unchanged logits", () => {
  const logits = new Float32Array(VOCAB).fill(-Infinity);
  logits[65] = Math.log(3);
  logits[0xc3] = 0;
  logits[END] = 0;
  const { top, ...own } = describeToken(byteTokenizer, { logits, id: 0xc3, count: 2 });
  expect(own).toEqual({ id: 0xc3, token: "\uFFFD", bytes: [0xc3], logprob: expect.closeTo(Math.log(1 / 5), 6) });
  expect(top[0]).toEqual({ id: 65, token: "A", bytes: [65], logprob: expect.closeTo(Math.log(3 / 5), 6) });
  expect(top).toHaveLength(2);
});

test("requested control tokens appear as text, and can be stop strings", () => {
  const piece = ["<|call|>", "<|note|>"].map((text): [string, number] => [text, TYPE.control]);
  const tokenizer = loadTokenizer(bpeMetadata([], piece), "m.gguf");
  const ids = tokenizer.encode("a<|call|>b<|note|>c", { addSpecial: false, parseSpecial: true });
  const read = (options: { stops: readonly string[]; visible?: readonly string[] }): string => {
    const answer = makeAnswerTexts(tokenizer)(options);
    return Array.from(ids, (id) => answer.push(id).text).join("") + answer.end().text;
  };
  expect(read({ stops: [] })).toBe("abc");
  expect(read({ stops: [], visible: ["<|call|>", "no token"] })).toBe("a<|call|>bc");
  expect(read({ stops: ["<|note|>"], visible: ["<|note|>"] })).toBe("ab");
});

test("answers with the same stop strings share no state", () => {
  const answers = makeAnswerTexts(byteTokenizer);
  const [one, other] = [answers({ stops: ["ab"] }), answers({ stops: ["ab"] })];
  expect(one.push(97)).toMatchObject({ text: "", stop: undefined });
  expect(other.push(98)).toMatchObject({ text: "b", stop: undefined });
  expect(one.push(98)).toMatchObject({ text: "", stop: "ab" });
  expect(other.push(99)).toMatchObject({ text: "c", stop: undefined });
  expect(answers({ stops: ["b"] }).push(98)).toMatchObject({ stop: "b" });
});

test("an answer counts its shown tokens, and knows the shown part of a token that a stop string cut", () => {
  const words = ["he", "llo", " wor", "ld"];
  const special = words.map((word) => [word, TYPE.userDefined] as const);
  const tokenizer = loadTokenizer(bpeMetadata([], special), "words");
  const ids = words.map((word) => tokenizer.encode(word, { addSpecial: false, parseSpecial: true })[0]!);
  const shown = (stop: string): unknown => {
    const answer = makeAnswerTexts(tokenizer)({ stops: [stop] });
    for (const [i, id] of ids.entries())
      if (answer.push(id).stop !== undefined) return answer.shown(ids.slice(0, i + 1));
    return undefined;
  };
  expect(shown("lo w")).toEqual({ count: 1, rest: "l" });
  expect(shown("llo")).toEqual({ count: 1, rest: "" });
  expect(shown("orld")).toEqual({ count: 2, rest: " w" });
});
