/**
 * Calls of a random model in each format: it opens a call and continues under the grammar. Used by tests and by
 * bench/calls.ts.
 */
import { byteCharacters } from "../../../src/engine/text/tokenizer/byte-alphabet.ts";
import {
  makeGrammarCompiler,
  type GrammarCompiler,
  type GrammarMatcher,
  type GrammarVocabulary,
} from "../../../src/engine/text/sampling/grammar.ts";
import { makeLazyGrammar, type LazyGrammar } from "../../../src/engine/text/sampling/lazy-grammar.ts";
import { SAMPLING_DEFAULTS } from "../../../src/engine/text/sampling/options.ts";
import { makeSampler } from "../../../src/engine/text/sampling/sampler.ts";
import type { ToolFormatName } from "../../../src/runtime/parse/index.ts";
import { makeLogits } from "../../engine/text/sampling/walk.ts";

/** Pieces that may close a value, end a call, or look as if they did. */
const WORDS = [
  " the",
  '"}',
  '", "',
  "]",
  "true",
  "null",
  "é",
  "ö",
  "ß",
  "｜",
  "▁",
  "中",
  "😀",
  "</",
  "\n\n",
  ">\n",
  '>{"',
  "12",
  "():",
  "<|",
  "call",
  '\\"',
  "\\n",
  "\\u00e9",
  "]]>",
  "```",
];
/** Marks inside calls, of all formats: each may stand in a text. */
export const MARKS = [
  "<parameter=",
  "</parameter>",
  "<function=",
  "</function>",
  "</invoke>",
  "<arg_key>",
  "</arg_value>",
  "</arg_value:opensource>",
  "</tool_call:opensource>",
  "</｜DSML｜parameter>",
  "</｜DSML｜invoke>",
  "</atem:parameter>",
  "</atem:invoke>",
  "<![CDATA[",
  "]]></param>",
];
const ASCII = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i));
const END = "<end>";

/** ASCII, two bytes that always begin a character, and all continuation bytes. */
const BYTES = [
  ...Array.from({ length: 0x80 }, (_, i) => i),
  0xc3,
  0xe2,
  ...Array.from({ length: 0x40 }, (_, i) => 0x80 + i),
];

export interface RandomModel {
  readonly vocabulary: GrammarVocabulary;
  readonly compiler: GrammarCompiler;
  readonly bytesOf: (id: number) => Uint8Array;
}

/**
 * A model whose tokens are these markups and common pieces.
 * @param isByteLevel its tokens may be parts of characters
 */
export function makeRandomModel(markup: readonly string[], isByteLevel = false): RandomModel {
  const characters = byteCharacters();
  const texts = [...ASCII, "\n", "\t", ...WORDS, ...new Set([...MARKS, ...markup])].map((text) =>
    new TextEncoder().encode(text),
  );
  const bytes = isByteLevel ? BYTES.map((byte) => Uint8Array.of(byte)) : [];
  const pieces = [...bytes, ...(isByteLevel ? texts.filter(({ length }) => length > 1) : texts)];
  const spell = (piece: Uint8Array): string =>
    isByteLevel ? Array.from(piece, (byte) => characters[byte]!).join("") : new TextDecoder().decode(piece);
  const tokens = [...pieces.map(spell), END];
  const vocabulary: GrammarVocabulary = {
    tokens,
    kind: isByteLevel ? "byte_level" : "raw",
    prependSpace: false,
    vocabSize: tokens.length,
    stopIds: [pieces.length],
  };
  const none = new Uint8Array();
  return { vocabulary, compiler: makeGrammarCompiler(vocabulary), bytesOf: (id) => pieces[id] ?? none };
}

interface Start {
  /** The text that opens the call, and the text before it. */
  readonly begun: string;
  readonly seed: number;
  readonly stepsMax: number;
}

/** The text of an answer with a call; undefined if the answer did not end. */
export async function answerWithCall(
  lazy: LazyGrammar,
  model: RandomModel,
  { begun, seed, stepsMax }: Start,
): Promise<string | undefined> {
  const { vocabulary, compiler, bytesOf } = model;
  const matcher = makeLazyGrammar(lazy, {
    vocabSize: vocabulary.vocabSize,
    bytesOf,
    isStop: (text) => text === END,
    isThinking: false,
    thinkingMax: Infinity,
    compiler: async () => compiler,
  });
  const answer = makeAnswer(matcher, model, { seed, stepsMax });
  try {
    for (const id of idsOf(begun, model)) await answer.take(id);
    if (matcher.isFree) throw new Error(`no call was opened by: ${begun}`);
    while (!matcher.isFree) {
      const state = await answer.step();
      if (state !== "going") return state === "over" ? answer.text() : undefined;
    }
    return answer.text();
  } finally {
    matcher.dispose();
  }
}

/** The text of an answer under a grammar from its beginning; undefined: it came to no end. */
export async function answerUnder(
  matcher: GrammarMatcher,
  model: RandomModel,
  start: Omit<Start, "begun">,
): Promise<string | undefined> {
  const answer = makeAnswer(matcher, model, start);
  try {
    for (;;) {
      const state = await answer.step();
      if (state !== "going") return state === "over" ? answer.text() : undefined;
    }
  } finally {
    matcher.dispose();
  }
}

/** An answer that grows. */
function makeAnswer(
  matcher: GrammarMatcher,
  { vocabulary, bytesOf }: RandomModel,
  { seed, stepsMax }: Omit<Start, "begun">,
) {
  const { vocabSize, stopIds } = vocabulary;
  const sampler = makeSampler(
    { ...SAMPLING_DEFAULTS, seed, temperature: 1, top_k: 0, top_p: 1 },
    { vocabSize, ctxLen: stepsMax },
  );
  const logits = makeLogits(vocabulary, seed, seed % 3 === 0 ? isMark : undefined);
  const bytes: number[] = [];
  let steps = 0;
  const text = (): string => new TextDecoder().decode(Uint8Array.from(bytes));
  /** Appends a token; true at the end of the answer. */
  const take = async (wanted: number): Promise<boolean> => {
    const id = (await matcher.settle?.(wanted)) ?? wanted;
    if (stopIds.includes(id)) return true;
    if (!matcher.accept(id)) throw new Error(`token ${id} is in the mask, but is refused behind: ${text()}`);
    bytes.push(...bytesOf(id));
    return matcher.isOver();
  };
  return {
    text,
    take,
    async step(): Promise<"going" | "over" | "cut"> {
      if (steps >= stepsMax) return "cut";
      const mask = await matcher.mask();
      if (mask?.every((word) => word === 0)) throw new Error(`nothing can follow: ${text()}`);
      return (await take(sampler.sample(logits(steps++), mask))) ? "over" : "going";
    },
  };
}

/** Half of them, so that a text can continue after one. */
const isMark = (token: string, id: number): boolean => id % 2 === 0 && /^(?:<\W?[a-z|｜ï]|\]<|\]\]>)/.test(token);

/** Tokens that spell a text, the longest first. */
function idsOf(text: string, { vocabulary, bytesOf }: RandomModel): number[] {
  const wanted = Buffer.from(text);
  const ids: number[] = [];
  for (let at = 0; at < wanted.length;) {
    let [best, length] = [-1, 0];
    for (let id = 0; id < vocabulary.vocabSize; id++) {
      const piece = bytesOf(id);
      if (piece.length > length && wanted.subarray(at, at + piece.length).equals(piece))
        [best, length] = [id, piece.length];
    }
    if (best < 0) throw new Error(`no token spells ${text.slice(at)}`);
    ids.push(best);
    at += length;
  }
  return ids;
}

const BEFORE: Partial<Record<ToolFormatName, string>> = {
  harmony: "",
  solar: "",
  glimmer: " to=tool<|message|>",
  functionary: "all\nLet me see.",
};

/** The text in front of a call, with the header that some formats need there. */
export const beforeCall = (name: ToolFormatName): string => BEFORE[name] ?? "Let me see.\n";
