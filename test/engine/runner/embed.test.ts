/** Texts to embed, between their special tokens, which survive truncation. */
import { expect, test } from "bun:test";
import type { EmbedRequest } from "../../../src/engine/batching/embed-queue.ts";
import type { LoadedEngine } from "../../../src/engine/batching/load.ts";
import { embed, encodeInput } from "../../../src/engine/runner/embed.ts";

const [BEGIN, END] = [1, 2];
/** A letter is its code; `<` and `>` are the special tokens. */
const tokenizer = {
  before: BEGIN,
  after: END,
  encode: (text: unknown) =>
    Int32Array.from(String(text), (letter) => (letter === "<" ? BEGIN : letter === ">" ? END : letter.charCodeAt(0))),
};
const idsOf = (text: string, limit = 6): number[] => [
  ...encodeInput(tokenizer, text, { limit, truncate: true, index: 0 }),
];
const letters = (text: string): number[] => Array.from(text, (letter) => letter.charCodeAt(0));

test("a text that spells its special tokens gets no second ones", () => {
  expect(idsOf("abc")).toEqual([BEGIN, ...letters("abc"), END]);
  expect(idsOf("<abc>")).toEqual([BEGIN, ...letters("abc"), END]);
  expect(idsOf("<abcd>")).toEqual([BEGIN, ...letters("abcd"), END]); // the longest allowed
});

test("a truncated text ends with its special token", () => {
  expect(idsOf("abcdefgh")).toEqual([BEGIN, ...letters("abcd"), END]);
  expect(idsOf("abcdefgh>")).toEqual([BEGIN, ...letters("abcd"), END]);
  expect(idsOf("<abcdefgh>")).toEqual([BEGIN, ...letters("abcd"), END]);
  expect(() => encodeInput(tokenizer, "abcde>", { limit: 6, truncate: false, index: 0 })).toThrow(
    "exceeds the context",
  );
});

test("the query of many documents is encoded once, and encoding yields to other requests", async () => {
  const encoded: string[] = [];
  const [asked, turns]: [EmbedRequest[], number[]] = [[], []];
  const encode = (text: unknown): Int32Array => (encoded.push(String(text)), tokenizer.encode(text));
  const model = {
    engine: { embed: (request: EmbedRequest) => void asked.push(request) },
    tokenizer: { ...tokenizer, encode, family: "wpm" },
    info: { ctxLen: 2 ** 15 },
    rankPrompt: undefined,
  } as unknown as LoadedEngine; // the used part
  const query = "q".repeat(30_000);
  const inputs = Array.from({ length: 20 }, (_, i) => `d${i}`);
  const loop = { nowNs: () => 0, nextTurn: async () => void turns.push(encoded.length) };
  const channel = { send: () => {}, onMessage: () => {}, onDisconnect: () => {}, exit: () => {} };
  const message = { kind: "embed", id: 1, inputs, query, truncate: true } as const;
  await embed(model, message, { channel, pending: new Set(), loop });
  expect(encoded).toEqual([query, ...inputs]);
  expect(turns.length).toBe(5);
  expect(asked.map(({ texts }) => texts.length)).toEqual([20]);
  expect([...asked[0]!.texts[19]!]).toEqual([BEGIN, ...letters(query), END, ...letters("d19"), END]);
});
