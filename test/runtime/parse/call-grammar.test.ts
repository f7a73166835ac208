/**
 * The parser of a format reads all texts that its grammar allows: random models open calls and continue under the
 * grammar, and every call is one of an offered tool with arguments that fit its schema.
 */
import { describe, expect, test } from "bun:test";
import { makeGrammarCompiler, type GrammarVocabulary } from "../../../src/engine/text/sampling/grammar.ts";
import { makeLazyGrammar, type LazyGrammar } from "../../../src/engine/text/sampling/lazy-grammar.ts";
import { SAMPLING_DEFAULTS } from "../../../src/engine/text/sampling/options.ts";
import { makeSampler } from "../../../src/engine/text/sampling/sampler.ts";
import { lazyGrammar, makeCallWriter } from "../../../src/runtime/parse/call-grammar.ts";
import { toolFormats, type ToolFormatName } from "../../../src/runtime/parse/index.ts";
import type { Tool } from "../../../src/runtime/requests/runtime.ts";
import { randomSchema } from "../../engine/text/sampling/random-schema.ts";
import { misfit } from "../../engine/text/sampling/validator.ts";
import { makeLogits } from "../../engine/text/sampling/walk.ts";
import { testSeed } from "../../seed.ts";
import { cut, parseWith } from "./cut.ts";

const tool = (name: string, parameters: unknown): Tool => ({ type: "function", function: { name, parameters } });

const NESTED = {
  type: "object",
  properties: {
    text: { type: "string" },
    count: { type: "integer", minimum: -5, maximum: 99 },
    unit: { type: "string", enum: ["m/s", 'a "b"', "<x>\n", "12"] },
    lines: { type: "array", items: { type: "string" }, maxItems: 3 },
    place: {
      type: "object",
      properties: { city: { type: "string" }, at: { type: "array", items: { type: "number" }, maxItems: 2 } },
      required: ["city"],
      additionalProperties: false,
    },
    either: { anyOf: [{ type: "string" }, { type: "integer" }] },
    maybe: { type: ["string", "null"] },
    code: { type: "string", pattern: "^[A-Z]{3}<?$" },
    named: { $ref: "#/$defs/n" },
  },
  required: ["text", "unit", "place", "either"],
  $defs: { n: { type: "string", maxLength: 4 } },
};
const TREE = {
  type: "object",
  properties: { value: { type: "integer" }, left: { $ref: "#" }, rest: { type: "array", items: { $ref: "#" } } },
  required: ["value"],
  additionalProperties: false,
};
const TOOLS = [
  tool("look_up", NESTED),
  tool("now", {}),
  tool("plant", TREE),
  ...[1, 2].map((i) => tool(`random-${i}`, randomSchema(i))),
];

const ASCII = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i));
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
  "</",
  "\n\n",
  ">\n",
  '>{"',
  "12",
  "():",
  "<|",
  "call",
];
const STEPS_MAX = 1500;

function vocabularyOf(markup: readonly string[]): GrammarVocabulary {
  const tokens = [...ASCII, "\n", "\t", ...WORDS, ...markup, "<end>"];
  return { tokens, kind: "raw", prependSpace: false, vocabSize: tokens.length, stopIds: [tokens.length - 1] };
}

/** The text of an answer that begins with a text; undefined: it came to no end. */
async function answerOf(
  lazy: LazyGrammar,
  { vocabulary, compiler, begun, seed }: Bench & { begun: string; seed: number },
): Promise<string | undefined> {
  const { tokens, stopIds, vocabSize } = vocabulary;
  const matcher = makeLazyGrammar(lazy, {
    vocabSize,
    bytesOf: (id) => new TextEncoder().encode(stopIds.includes(id) ? "" : tokens[id]!),
    isStop: (text) => text === "<end>",
    isThinking: false,
    thinkingMax: Infinity,
    compiler: async () => compiler,
  });
  const sampler = makeSampler(
    { ...SAMPLING_DEFAULTS, seed, temperature: 1, top_k: 0, top_p: 1 },
    { vocabSize, ctxLen: STEPS_MAX },
  );
  const logits = makeLogits(vocabulary, seed);
  let text = "";
  const take = async (wanted: number): Promise<boolean> => {
    const id = await matcher.settle!(wanted); // a lazy one settles
    if (stopIds.includes(id)) return true;
    expect(matcher.accept(id)).toBe(true);
    text += tokens[id]!;
    return matcher.isOver();
  };
  try {
    for (let at = 0; at < begun.length;) {
      const id = tokens.findLastIndex((token) => begun.startsWith(token, at));
      await take(id);
      at += tokens[id]!.length;
    }
    expect(matcher.isFree).toBe(false);
    for (let step = 0; step < STEPS_MAX && !matcher.isFree; step++) {
      const mask = await matcher.mask();
      if (mask?.every((word) => word === 0)) throw new Error(`nothing can follow: ${text}`);
      if (await take(sampler.sample(logits(step), mask))) return text;
    }
    return matcher.isFree ? text : undefined;
  } finally {
    matcher.dispose();
  }
}

/** The text in front of a call, for formats that need a header there. */
const BEFORE: Partial<Record<ToolFormatName, string>> = {
  harmony: "",
  solar: "",
  glimmer: " to=tool<|message|>",
  functionary: "all\nLet me see.",
};

interface Bench {
  readonly vocabulary: GrammarVocabulary;
  readonly compiler: ReturnType<typeof makeGrammarCompiler>;
}

const NAMES = Object.keys(toolFormats) as ToolFormatName[]; // the keys of a literal
const SEED = testSeed % 1_000_000;

describe.each(NAMES)("%s", (name) => {
  const format = toolFormats[name];
  test.each([true, false])(
    "every call parses and fits its schema; parallel calls: %p",
    async (isParallel) => {
      const writer = makeCallWriter(TOOLS, isParallel);
      const lazy = lazyGrammar(writer, format.grammar(writer), { once: !isParallel })!;
      const vocabulary = vocabularyOf(format.markup);
      const compiler = makeGrammarCompiler(vocabulary);
      let [complete, called] = [0, 0];
      try {
        for (const [i, { text: opening, atStart }] of lazy.triggers.entries()) {
          for (let seed = 1; seed <= 12; seed++) {
            const before = atStart ? "" : (BEFORE[name] ?? "Let me see.\n");
            const begun = before + opening;
            const text = await answerOf(lazy, { vocabulary, compiler, begun, seed: SEED + seed * 100 + i });
            if (text === undefined) continue;
            complete++;
            const pieces = cut(text, [1, 3, 7][seed % 3] === 1 ? repeat(1) : repeat(5));
            const events = parseWith(format.makeParser(TOOLS), pieces);
            const calls = events.filter((event) => event.kind === "toolCall");
            const rest = events.flatMap((event) => (event.kind === "text" ? [event.text.trim()] : []));
            if (calls.length === 0) throw new Error(`no call: ${JSON.stringify(text)} gave ${JSON.stringify(events)}`);
            if (!isParallel) expect(calls).toHaveLength(1);
            expect(rest.join("")).toBe(before.includes("Let me see.") ? "Let me see." : "");
            for (const call of calls) {
              const offered = TOOLS.find((each) => each.function.name === call.name);
              const why = offered && misfit(call.arguments, schemaOf(offered));
              if (!offered || why) throw new Error(`${why ?? "not offered"}: ${JSON.stringify(text)}`);
              called++;
            }
          }
        }
      } finally {
        compiler.dispose();
      }
      expect(complete).toBeGreaterThan(lazy.triggers.length * 2);
      expect(called).toBeGreaterThanOrEqual(complete);
    },
    120_000,
  );
});

const schemaOf = ({ function: { parameters } }: Tool): unknown =>
  Object.keys(parameters as object).length > 0 ? parameters : { type: "object", additionalProperties: false };

function* repeat(length: number): Generator<number> {
  for (;;) yield length;
}
