import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { AppError } from "../../../../src/base/errors.ts";
import {
  makeGrammarCompiler,
  type GrammarCompiler,
  type GrammarVocabulary,
} from "../../../../src/engine/text/sampling/grammar.ts";
import { loadTokenizer, vocabularyForGrammar } from "../../../../src/engine/text/tokenizer/load.ts";
import { golden, goldenTest } from "../../../golden.ts";
import { SCHEMAS } from "./schemas.ts";
import { misfit } from "./validator.ts";
import { answer, makeLogits, type Answer } from "./walk.ts";
import { cpuMs } from "../../../cpu-time.ts";

const WORDS = [
  '{"',
  '":',
  '": ',
  '", "',
  '"}',
  '"]',
  "},",
  "}}",
  "]]",
  "true",
  "false",
  "null",
  " the",
  "name",
  "é",
  "中",
  "😀",
  "\n  ",
  "\n\n",
  "12",
  "0.",
  "e+",
  "\\n",
  "\\u00",
];
const ASCII = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i));

/** Printable characters, some longer pieces, a control token, an end token, and two rows of padding. */
const vocabulary: GrammarVocabulary = {
  tokens: [...ASCII, "\n", "\t", ...WORDS, "", "<end>"],
  kind: "raw",
  prependSpace: false,
  vocabSize: ASCII.length + 2 + WORDS.length + 4,
  stopIds: [ASCII.length + 2 + WORDS.length + 1],
};
const CONTROL_ID = vocabulary.stopIds[0]! - 1;

const logits = makeLogits(vocabulary, 77);
const textOf = (ids: readonly number[]): string => ids.map((id) => vocabulary.tokens[id]!).join("");

let compiler: GrammarCompiler;
beforeAll(() => void (compiler = makeGrammarCompiler(vocabulary)));
afterAll(() => compiler.dispose());

const ask = (format: "json" | Readonly<Record<string, unknown>>, seed: number, limit = 400): Promise<Answer> =>
  answer(compiler, format, { vocabulary, logits, textOf, seed, limit });

test("JSON mode gives a JSON object with any logits", async () => {
  let complete = 0;
  for (let seed = 1; seed <= 20; seed++) {
    const got = await ask("json", seed);
    expect(got.text.startsWith("{")).toBe(true);
    if (!got.complete) continue;
    complete++;
    expect(Object.prototype.toString.call(JSON.parse(got.text))).toBe("[object Object]");
  }
  expect(complete).toBeGreaterThan(12);
});

describe("answers with any logits fit the schema:", () => {
  test.each(Object.keys(SCHEMAS))("%s", async (name) => {
    const schema = SCHEMAS[name]!;
    let complete = 0;
    for (let seed = 1; seed <= 8; seed++) {
      const got = await ask(schema, seed);
      if (!got.complete) continue;
      complete++;
      expect([got.text, misfit(JSON.parse(got.text), schema)]).toEqual([got.text, undefined]);
    }
    expect(complete).toBeGreaterThan(3);
  });
});

test("an object has only its declared properties unless the schema allows others", async () => {
  for (let seed = 1; seed <= 6; seed++) {
    const got = await ask(SCHEMAS["optional"]!, seed);
    if (got.complete) expect(Object.keys(JSON.parse(got.text)).filter((key) => !"abc".includes(key))).toEqual([]);
  }
});

test("blank space is bounded, so that logits for blanks only still give JSON", async () => {
  const bias = (token: string): number => (/^\s+$/.test(token) ? 50 : token === "{" || token.startsWith("}") ? 20 : 0);
  const blanks = Float32Array.from({ length: vocabulary.vocabSize }, (_, id) => bias(vocabulary.tokens[id] ?? ""));
  const got = await answer(compiler, "json", { vocabulary, logits: () => blanks.slice(), textOf, seed: 3, limit: 120 });
  expect(got.text).toMatch(/^\{\s{1,40}\}$/);
});

test("control tokens and padding are never allowed, and stop tokens only after a complete value", async () => {
  const matcher = await compiler.matcher({ type: "integer" });
  const allowed = async (id: number): Promise<boolean> => (((await matcher.mask())![id >> 5]! >>> (id & 31)) & 1) === 1;
  const stop = vocabulary.stopIds[0]!;
  expect([await allowed(CONTROL_ID), await allowed(stop), await allowed(stop + 1)]).toEqual([false, false, false]);
  expect(matcher.accept(vocabulary.tokens.indexOf("7"))).toBe(true);
  expect([await allowed(CONTROL_ID), await allowed(stop), await matcher.isOver()]).toEqual([false, true, false]);
  expect(matcher.accept(vocabulary.tokens.indexOf("x"))).toBe(false);
  matcher.dispose();
});

/** Accepts characters one by one; false at the first invalid one. */
async function takes(schema: "json" | Readonly<Record<string, unknown>>, text: string): Promise<boolean> {
  const matcher = await compiler.matcher(schema);
  const fits = Array.from(text).every((character) => matcher.accept(vocabulary.tokens.indexOf(character)));
  matcher.dispose();
  return fits;
}

test("all kinds of strings refuse raw control characters, lone quotes and lone surrogates", async () => {
  const kinds = [
    {},
    { minLength: 1 },
    { maxLength: 5 },
    { minLength: 1, maxLength: 5 },
    { pattern: "a" },
    { pattern: "^.*$" },
  ];
  for (const kind of kinds) {
    const schema = { type: "array", items: { type: "string", ...kind } };
    expect([kind, await takes(schema, '["a')]).toEqual([kind, true]);
    for (const text of ['["a\n', '["a\t', '["a\\ud800', '["a\\x'])
      expect([kind, text, await takes(schema, text)]).toEqual([kind, text, false]);
  }
  expect([await takes("json", '{"a\n'), await takes("json", '{"a\\u00e9\\n":"\\\\"}')]).toEqual([false, true]);
});

test("a declared name is not accepted as an additional one, in any spelling", async () => {
  const schema = {
    type: "object",
    properties: { abc: { type: "integer" }, 'q"': {}, é: {} },
    additionalProperties: { type: "boolean" },
  };
  expect([await takes(schema, '{"abc":1'), await takes(schema, '{"abc":t')]).toEqual([true, false]);
  expect([await takes(schema, '{"ab":t'), await takes(schema, '{"abcd":t')]).toEqual([true, true]);
  expect([
    await takes(schema, '{"q\\"":t'),
    await takes(schema, '{"q\\"x":t'),
    await takes(schema, '{"\\u0061bc"'),
  ]).toEqual([true, true, false]);
  expect([await takes(schema, '{"q\\"":tr'), await takes(schema, '{"é')]).toEqual([true, true]);
});

test("an open object may declare names of any length and spelling", async () => {
  const long = "long".repeat(40_000);
  const schema = {
    type: "object",
    properties: { [long]: {}, "\u0001": {}, "\ud800": {}, "": {} },
    additionalProperties: true,
  };
  expect([await takes(schema, '{"x":1'), await takes(schema, `{"${"long".repeat(3)}!":1`)]).toEqual([true, true]);
  expect([await takes(schema, '{"\\u0002'), await takes(schema, '{"\\ux')]).toEqual([false, false]);
});

test("a tuple without items has no more items than prefixItems", async () => {
  const schema = { type: "array", prefixItems: [{ type: "null" }, { type: "boolean" }] };
  expect([
    await takes(schema, "[null,true]"),
    await takes(schema, "[null,true,"),
    await takes(schema, "[null]"),
  ]).toEqual([true, false, false]);
});

test("matchers share a compiled grammar and keep their own state", async () => {
  const [one, other] = await Promise.all([compiler.matcher("json"), compiler.matcher("json")]);
  one.accept(vocabulary.tokens.indexOf("{"));
  one.accept(vocabulary.tokens.indexOf("}"));
  expect([await one.isOver(), await other.isOver()]).toEqual([true, false]);
  one.dispose();
  one.dispose();
  expect(other.accept(vocabulary.tokens.indexOf("{"))).toBe(true);
  other.dispose();
});

test("a library that failed to load is loaded again for the next request", async () => {
  let fails = true;
  const { tokens, ...rest } = vocabulary;
  const late = makeGrammarCompiler({
    ...rest,
    get tokens() {
      if (fails) throw new Error("no memory");
      return tokens;
    },
  });
  expect(await late.matcher("json").catch((error: Error) => error.message)).toBe("no memory");
  fails = false;
  (await late.matcher("json")).dispose();
  late.dispose();
});

test("a grammar evicted from the cache lives until its last matcher is disposed", async () => {
  const matcher = await compiler.matcher({ type: "array", items: { const: "kept" } });
  for (let i = 0; i < 40; i++) (await compiler.matcher({ const: i })).dispose();
  expect(matcher.accept(vocabulary.tokens.indexOf("["))).toBe(true);
  expect((await matcher.mask())!.some((word) => word !== 0)).toBe(true);
  matcher.dispose();
});

test("a bare number can end for a model without stop tokens", async () => {
  const endless = makeGrammarCompiler({ ...vocabulary, stopIds: [] });
  const matcher = await endless.matcher({ type: "integer" });
  matcher.accept(vocabulary.tokens.indexOf("4"));
  expect(await matcher.isOver()).toBe(true);
  matcher.dispose();
  endless.dispose();
});

test.each([
  [{ type: "strange" }, "$.type: unknown type"],
  [{ type: "object", properties: { a: { type: "foo" } } }, "$.a.type: unknown type"],
  [{ type: "object", properties: [] }, "$.properties: expected an object, got an array"],
  [{ type: "object", required: "a" }, "$.required: expected an array"],
  [{ type: "object", required: [1] }, "$.required: expected an array of strings"],
  [{ anyOf: [] }, "$.anyOf: expected at least one schema"],
  [{ anyOf: ["string"] }, '$.anyOf[0]: expected a schema, got "string"'],
  [{ type: "string", minLength: -1 }, "$.minLength: expected a whole number"],
  [{ type: "string", minLength: 5, maxLength: 2 }, "minLength 5 is more than maxLength 2"],
  [{ type: "array", minItems: 3, maxItems: 2 }, "minItems 3 is more than maxItems 2"],
  [{ type: "integer", minimum: 2, maximum: 1 }, "no integer is between"],
  [{ type: "integer", minimum: 1e20, maximum: 1e20, multipleOf: 2 }, "no integer is between"],
  [{ $ref: "https://example.org/s.json" }, "$.$ref: only references inside the schema"],
  [{ $ref: "#/$defs/absent" }, "'#/$defs/absent' points at nothing"],
  [{ $ref: "#" }, "refers to itself without end"],
  [{ anyOf: [{ $ref: "#" }, { type: "null" }] }, "refers to itself without end"],
  [{ allOf: [{ type: "string" }, { type: "integer" }] }, "no value fits"],
  [{ type: "object", properties: { a: false }, required: ["a"] }, "$.a: no value fits"],
  [
    { type: "object", properties: Object.fromEntries(Array.from({ length: 257 }, (_, i) => [`p${i}`, {}])) },
    "$: at most 256 optional properties, got 257",
  ],
  [{ enum: [] }, "$.enum: no value is listed"],
  [{ anyOf: [{ $ref: "#", maxProperties: 2 }, { type: "null" }] }, "refers to itself without end"],
  [{ allOf: [{ properties: {} }, { properties: 7 }] }, "$.properties: expected an object, got 7"],
  [{ allOf: [{ patternProperties: "a" }, { patternProperties: {} }] }, 'expected an object, got "a"'],
  [{ type: "string", pattern: "(?=x)y" }, "look-around"],
  [objects(65), "$.properties.a.properties.a.properties"],
  [objects(65), "nested deeper than 64 schemas"],
  [nested(64), `format: $${".items".repeat(33)}.…: nested deeper than 64 schemas`],
  [{ $defs: { x: objects(65) }, $ref: "#/$defs/x" }, "format: $.$defs.x.properties.a"],
  [{ const: Array.from({ length: 70 }).reduce((inner) => [inner], 1) }, "nested deeper than 64 schemas"],
  [{ enum: ["x".repeat(300_000)] }, "a schema may have 262144 characters"],
])("an unusable schema is refused with its place (%#)", async (schema, reason) => {
  const failure = compiler.matcher(schema).then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(await failure).toBeInstanceOf(AppError);
  expect(await failure).toMatchObject({ code: "bad_request", message: expect.stringContaining(reason) });
});

function nested(depth: number): Record<string, unknown> {
  return depth === 0 ? { type: "null" } : { items: nested(depth - 1) };
}

/** This many nested objects. */
function objects(count: number): Record<string, unknown> {
  return { type: "object", ...(count > 1 ? { properties: { a: objects(count - 1) }, required: ["a"] } : {}) };
}

test.each([
  [objects(64)],
  [{ anyOf: [objects(63), { type: "null" }] }],
  [{ $defs: { x: objects(64) }, $ref: "#/$defs/x" }],
  [nested(63)],
])("64 nested schemas are accepted (%#)", async (schema) => {
  expect(await compiler.matcher(schema)).toBeDefined();
});

test("bounds and patterns beyond the budget are dropped", async () => {
  const many = (item: (i: number) => object): object => ({
    type: "array",
    items: { anyOf: Array.from({ length: 200 }, (_, i) => item(i)) },
  });
  const numbers = { ...many((i) => ({ type: "number", minimum: i, maximum: i + 0.5 })) };
  expect([await takes(numbers, "[3.2,"), await takes(numbers, "[199.9,")]).toEqual([true, true]);
  const few = { type: "array", items: { type: "number", minimum: 3, maximum: 3.5 } };
  expect([await takes(few, "[3.2,"), await takes(few, "[199.9,")]).toEqual([true, false]);
  const patterns = { ...many((i) => ({ type: "string", pattern: `^a${i}$` })) };
  expect([await takes(patterns, '["a3",'), await takes(patterns, '["zz",')]).toEqual([true, true]);
});

test("a schema that grows exponentially is refused within ten seconds of processor time", async () => {
  const wide = (depth: number): unknown =>
    depth === 0 ? { type: "null" } : { anyOf: [{ $ref: `#/$defs/d${depth - 1}` }, { required: [`x${depth}`] }] };
  const $defs = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`d${i}`, { allOf: [wide(i), wide(i)] }]));
  const started = cpuMs();
  const failure = await compiler.matcher({ $ref: "#/$defs/d19", $defs }).then(
    () => "compiled",
    (error: unknown) => String(error),
  );
  expect(failure).toContain("cases");
  expect(cpuMs() - started).toBeLessThan(10_000);
});

goldenTest(
  "a vocabulary of 128,256 tokens: random answers are JSON that fits",
  async () => {
    const path = golden("vocab/ggml-vocab-llama-bpe.gguf");
    const gguf = openGguf(path);
    const tokenizer = loadTokenizer(gguf.metadata, path);
    gguf.close();
    const real = { ...vocabularyForGrammar(tokenizer), vocabSize: tokenizer.vocabSize };
    const parts = {
      vocabulary: real,
      logits: makeLogits(real, 5),
      textOf: (ids: readonly number[]) => tokenizer.detokenize(ids),
      limit: 120,
    };
    const compilerOfReal = makeGrammarCompiler(real);
    let complete = 0;
    for (const [i, format] of (
      ["json", SCHEMAS["pydantic"]!, SCHEMAS["recursive"]!, SCHEMAS["open"]!] as const
    ).entries()) {
      for (let seed = 1; seed <= 2; seed++) {
        const got = await answer(compilerOfReal, format, { ...parts, seed: seed + i });
        if (!got.complete) continue;
        complete++;
        const fits = format === "json" ? { type: "object" } : format;
        expect([got.text, misfit(JSON.parse(got.text), fits)]).toEqual([got.text, undefined]);
      }
    }
    expect(complete).toBeGreaterThan(4);
    compilerOfReal.dispose();
  },
  20_000,
);
