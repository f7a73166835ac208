/** The heads of rerankers, and the text that they read. */
import { describe, expect, test } from "bun:test";
import { rankHeadOf, RANK_PROMPT } from "../../../src/engine/batching/rank-head.ts";
import type { Gguf, TensorInfo } from "../../../src/engine/formats/gguf/gguf.ts";
import { loadTokenizer } from "../../../src/engine/text/tokenizer/load.ts";
import type { TextSegment } from "../../../src/engine/text/tokenizer/tokenizer.ts";
import { bpeMetadata } from "../text/tokenizer/fixtures.ts";
import { quants } from "../../../src/engine/formats/quant/index.ts";
import { pairEncoder } from "../../../src/engine/runner/rank-input.ts";

/** The part of a file that a head needs. */
function file(tensors: Record<string, { shape: number[]; values: number[] }>, pooling = 4): Gguf {
  const infos = Object.entries(tensors).map(([name, { shape, values }]): [string, TensorInfo] => [
    name,
    { name, shape, quant: quants.f32, byteLength: 4 * values.length, shard: 0, offset: 0 },
  ]);
  return {
    path: "m.gguf",
    metadata: new Map<string, number>([["a.pooling_type", pooling]]),
    tensors: new Map(infos),
    read: (name: string) => new Uint8Array(Float32Array.from(tensors[name]!.values).buffer),
  } as unknown as Gguf;
}

const headOf = (gguf: Gguf) => rankHeadOf(gguf, { arch: "a", dim: 2, types: true });
const state = Float64Array.of(2, -1);

test("a second text has embeddings with its own type, and an id beyond the vocabulary is refused", () => {
  const gguf = file({
    "cls.output.weight": { shape: [2, 1], values: [1, 1] },
    "token_types.weight": { shape: [2, 2], values: [1, 1, 3, 4] },
    "token_embd.weight": { shape: [2, 3], values: [0, 1, 10, 11, 20, 21] },
  });
  const { secondText } = headOf(gguf)!;
  expect([...secondText!(Int32Array.of(2, 0))]).toEqual([22, 24, 2, 4]);
  for (const id of [3, -1]) {
    expect(() => secondText!(Int32Array.of(0, id))).toThrow(`token ${id}: expected an id of 0 … 2`);
  }
});

describe("a head", () => {
  test("gives a logit if it has one output, after a dense layer with tanh if there is one", () => {
    const output = { shape: [2, 1], values: [3, 5] };
    expect(headOf(file({ "cls.output.weight": output }))).toMatchObject({ kind: "logit" });
    expect(headOf(file({ "cls.output.weight": output }))!.score(state)).toBe(1);
    const dense = { "cls.weight": { shape: [2, 2], values: [1, 0, 0, 1] }, "cls.bias": { shape: [2], values: [0, 1] } };
    expect(headOf(file({ ...dense, "cls.output.weight": output }))!.score(state)).toBeCloseTo(3 * Math.tanh(2), 12);
  });

  test("may have a norm before its output", () => {
    const tensors = {
      "cls.weight": { shape: [2, 2], values: [1, 0, 0, 1] },
      "cls.norm.weight": { shape: [2], values: [1, 3] },
      "cls.output.weight": { shape: [2, 1], values: [1, 1] },
    };
    // two values are normed to 1 and −1
    expect(rankHeadOf(file(tensors), { arch: "a", dim: 2, types: true })!.score(state)).toBeCloseTo(1 - 3, 4);
  });

  test("gives the probability of the first output if it has two", () => {
    const head = headOf(file({ "cls.output.weight": { shape: [2, 2], values: [1, 0, 0, 1] } }))!;
    expect(head.kind).toBe("share");
    expect(head.score(state)).toBeCloseTo(Math.exp(2) / (Math.exp(2) + Math.exp(-1)), 12);
    expect(head.score(Float64Array.of(1e6, -1e6))).toBe(1);
  });

  test("is read only if the pooling of the file is rank, and must be there then", () => {
    expect(headOf(file({ "cls.output.weight": { shape: [2], values: [1, 1] } }, 1))).toBeUndefined();
    expect(() => headOf(file({}))).toThrow("tensor 'cls.output.weight': expected the head of a reranker, got none");
    const wide = { "cls.output.weight": { shape: [3, 1], values: [1, 1, 1] } };
    expect(() => headOf(file(wide))).toThrow("tensor 'cls.output.weight': expected (2, 1 to 1024), got (3, 1)");
  });
});

describe("a pair", () => {
  /** Ids above 1,000 are of markup. */
  const encode = (given: string | readonly TextSegment[], { parseSpecial }: { parseSpecial: boolean }): Int32Array => {
    const segments = typeof given === "string" ? [{ text: given, control: true }] : given;
    const codes = segments.flatMap(({ text, control }) =>
      [...text].map((c) => c.charCodeAt(0) + (control && parseSpecial ? 1000 : 0)),
    );
    return Int32Array.from(codes);
  };
  const limits = { limit: 10, truncate: true, index: 0 };
  const text = (ids: Iterable<number>): string =>
    String.fromCharCode(...[...ids].map((id) => (id > 1000 ? id - 1000 : id)));
  const tokens = (family: "wpm" | "ugm") => ({ encode, detokenize: text, before: 60, after: 62, family }); // < and >
  const paired = (family: "wpm" | "ugm", { prompt, ...given }: typeof limits & { prompt: string | undefined }) =>
    pairEncoder(tokens(family), "ab", prompt).encode("cdefgh", given);

  test("stands between the special tokens of its family", () => {
    expect(text(paired("wpm", { ...limits, prompt: undefined }))).toBe("<ab>cdefg>");
    expect(text(paired("ugm", { ...limits, prompt: undefined }))).toBe("<ab>>cdef>");
    expect(pairEncoder(tokens("wpm"), "ab", undefined).second).toBe(4);
  });

  test("is one text with its prompt, so that tokens may span both", () => {
    const tokenizer = loadTokenizer(bpeMetadata(["Ġ a", "Ġa b"]), "m.gguf");
    const ids = pairEncoder(tokenizer, "ab", "Q: {query} D: {document}").encode("ab", limits);
    expect([...ids].map((id) => tokenizer.detokenize([id]))).toEqual(["Q", ":", " ab", " ", "D", ":", " ab"]);
  });

  test("stands in the model's prompt, whose control tokens are parsed, but not those of the texts", () => {
    const ids = paired("wpm", { ...limits, prompt: "[{query}|{document}]" });
    expect(text(ids)).toBe("[ab|cdefg]");
    expect([...ids].filter((id) => id > 1000).length).toBe(3);
    expect(RANK_PROMPT.split("{document}").length).toBe(2);
  });

  test("has its texts wherever the prompt names them", () => {
    const ask = (prompt: string, limit: number): string => text(paired("wpm", { ...limits, prompt, limit }));
    expect(ask("[{document}|{query}]", 20)).toBe("[cdefgh|ab]");
    expect(ask("[{document}|{query}|{document}]", 20)).toBe("[cdefgh|ab|cdefgh]");
    expect(ask("[{document}|{query}|{document}]", 13)).toBe("[cde|ab|cde]");
    expect(ask("[{query}]", 20)).toBe("[ab]cdefgh");
  });

  test("is refused if it does not fit and truncate is false, or if no document has room", () => {
    const strict = { ...limits, prompt: undefined, truncate: false };
    expect(() => paired("wpm", strict)).toThrow("documents[0]: the input length exceeds");
    expect(() => paired("wpm", { ...strict, prompt: "[{query}|{document}]" })).toThrow("documents[0]: the input");
    for (const prompt of [undefined, "[{query}{document}]"])
      expect(() => paired("wpm", { ...limits, prompt, limit: 4 })).toThrow("query: expected");
  });
});
