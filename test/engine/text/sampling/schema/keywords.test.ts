/** Keywords of JSON Schema beyond types and bounds, checked against Ajv. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import {
  makeGrammarCompiler,
  type GrammarCompiler,
  type GrammarVocabulary,
} from "../../../../../src/engine/text/sampling/grammar.ts";
import { schemaGrammar } from "../../../../../src/engine/text/sampling/schema/compile.ts";
import { answer, makeLogits } from "../walk.ts";

type Schema = Readonly<Record<string, unknown>>;

const CHARACTERS = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i));
const vocabulary: GrammarVocabulary = {
  tokens: [...CHARACTERS, '{"', '":', '", "', "],", "true", "null", "<end>"],
  kind: "raw",
  prependSpace: false,
  vocabSize: CHARACTERS.length + 8,
  stopIds: [CHARACTERS.length + 6],
};
const logits = makeLogits(vocabulary, 5);
const textOf = (ids: readonly number[]): string => ids.map((id) => vocabulary.tokens[id]!).join("");

let compiler: GrammarCompiler;
beforeAll(() => void (compiler = makeGrammarCompiler(vocabulary)));
afterAll(() => compiler.dispose());

/** True if the grammar accepts a whole text as an answer. */
async function takes(schema: Schema, text: string): Promise<boolean> {
  const matcher = await compiler.matcher(schema);
  const fits = Array.from(text).every((character) => matcher.accept(vocabulary.tokens.indexOf(character)));
  const mask = fits && !(await matcher.isOver()) ? await matcher.mask() : undefined;
  const stop = vocabulary.stopIds[0]!;
  const ends = (await matcher.isOver()) || ((mask?.[stop >> 5] ?? 0) >>> (stop & 31)) % 2 === 1;
  matcher.dispose();
  return fits && ends;
}

const KEYWORD = ["then"];
/** `then` of a schema: as a literal key, it would make the object a promise. */
const so = (schema: object): object => Object.fromEntries(KEYWORD.map((key) => [key, schema]));
const object = (properties: object, rest: object = {}): Schema => ({ type: "object", properties, ...rest });
const PATTERNS = { patternProperties: { "-d$": { type: "boolean" } } };
const KIND = { enum: ["card", "bank", "cash"] };
const LETTERS = { type: "array", items: { enum: ["a", "b", "c"] }, uniqueItems: true };

/** Each with answers that fit and answers that do not. */
const CASES: Readonly<Record<string, readonly [Schema, yes: readonly string[], no: readonly string[]]>> = {
  "if, then and else": [
    object(
      { kind: KIND },
      {
        required: ["kind"],
        if: { properties: { kind: { const: "card" } } },
        ...so({ properties: { number: { type: "integer" } }, required: ["number"] }),
        else: { properties: { note: { type: "boolean" } } },
      },
    ),
    ['{"kind":"card","number":4}', '{"kind":"cash"}', '{"kind":"bank","note":true}'],
    ['{"kind":"card"}', '{"kind":"bank","note":1}'],
  ],
  "several conditions in allOf": [
    object(
      { kind: KIND },
      {
        required: ["kind"],
        allOf: [
          { if: { properties: { kind: { const: "card" } }, required: ["kind"] }, ...so({ required: ["pin"] }) },
          { if: { properties: { kind: { enum: ["bank"] } } }, ...so({ required: ["iban"] }) },
        ],
      },
    ),
    ['{"kind":"card","pin":1}', '{"kind":"bank","iban":"x"}', '{"kind":"cash"}'],
    ['{"kind":"card"}', '{"kind":"bank"}'],
  ],
  "if of a boolean": [
    object(
      { gift: { type: "boolean" } },
      { required: ["gift"], if: { properties: { gift: { const: true } } }, ...so({ required: ["to"] }) },
    ),
    ['{"gift":false}', '{"gift":true,"to":1}'],
    ['{"gift":true}'],
  ],
  "not an enum": [{ type: "string", not: { enum: ["red", "re"] } }, ['"rex"', '"reds"', '""'], ['"red"', '"re"']],
  "not a const among others": [{ enum: ["a", "b", 3], not: { const: "b" } }, ['"a"', "3"], ['"b"']],
  "not a type": [{ not: { type: ["string", "number"] } }, ["true", "null", "[]"], ['"a"', "1"]],
  "not required": [
    object({ a: { const: 1 }, b: { const: 2 } }, { not: { required: ["a", "b"] } }),
    ['{"a":1}', '{"b":2}', "{}"],
    ['{"a":1,"b":2}'],
  ],
  "not bounds": [{ type: "integer", not: { minimum: 5 } }, ["4", "-90"], ["5", "77"]],
  dependentRequired: [
    object({ a: { const: 1 }, b: { const: 2 } }, { dependentRequired: { a: ["b"] } }),
    ['{"a":1,"b":2}', '{"b":2}', "{}"],
    ['{"a":1}'],
  ],
  dependentSchemas: [
    object({ a: { const: 1 } }, { dependentSchemas: { a: { properties: { b: { const: 2 } }, required: ["b"] } } }),
    ['{"a":1,"b":2}', "{}"],
    ['{"a":1}'],
  ],
  "uniqueItems of an enum": [LETTERS, ['["c","a"]', "[]", '["a","b","c"]'], ['["a","a"]', '["a","b","a"]']],
  "uniqueItems of booleans, counted": [
    { type: "array", items: { type: "boolean" }, uniqueItems: true, minItems: 2 },
    ["[true,false]"],
    ["[true]", "[true,true]"],
  ],
  contains: [
    { type: "array", items: { type: "integer" }, contains: { const: 7 } },
    ["[7]", "[1,7,2]"],
    ["[]", "[1,2]"],
  ],
  "contains, counted": [
    { type: "array", items: { enum: [1, 7] }, contains: { const: 7 }, minItems: 2, maxItems: 3 },
    ["[1,7]", "[1,1,7]", "[7,7]"],
    ["[7]", "[1,1]", "[1,1,7,7]", "[1,1,1]"],
  ],
  "contains at most": [
    { type: "array", items: { enum: [1, 7] }, contains: { const: 7 }, minContains: 1, maxContains: 2 },
    ["[7]", "[1,7,1,7]"],
    ["[]", "[7,7,7]"],
  ],
  "a reference that leads back to itself, with constraints beside it": [
    object({ next: { $ref: "#", required: ["value"] }, value: { type: "integer" } }),
    ["{}", '{"next":{"value":1}}', '{"next":{"next":{"value":2},"value":1}}'],
    ['{"next":{}}', '{"next":{"next":{},"value":1}}', '{"next":{"next":{"value":"2"},"value":1}}'],
  ],
  "required names that are not declared": [
    object({ a: {} }, { required: ["a", "b", "c-d"], additionalProperties: { type: "integer" }, ...PATTERNS }),
    ['{"a":"x","b":1,"c-d":true}'],
    ['{"a":"x","b":"x","c-d":true}', '{"a":"x","b":1,"c-d":1}', '{"a":"x","c-d":true}'],
  ],
  "multipleOf a whole number": [{ type: "integer", multipleOf: 25 }, ["0", "75", "-1250"], ["7", "1255"]],
  "multipleOf a decimal": [
    { type: "number", minimum: 0, multipleOf: 0.01 },
    ["0", "19.9", "19.90", "7"],
    ["0.001", "-1"],
  ],
  "multipleOf with bounds": [{ type: "number", minimum: 0.5, maximum: 2, multipleOf: 0.5 }, ["1.5", "2"], ["0", "2.5"]],
  "multipleOf above zero": [
    { type: "number", exclusiveMinimum: 0, maximum: 5000, multipleOf: 0.25 },
    ["0.25", "4999.75", "5000"],
    ["0", "0.3", "5000.25"],
  ],
  "multipleOf seven in bounds": [{ type: "integer", minimum: 1, maximum: 30, multipleOf: 7 }, ["7", "28"], ["1", "30"]],
  "an enum with bounds": [{ enum: [1, 5, 9, "x"], minimum: 4, type: "integer" }, ["5", "9"], ["1", '"x"']],
  "a class with lengths": [
    { type: "string", pattern: "^[a-z]+$", minLength: 3, maxLength: 5 },
    ['"abc"', '"abcde"'],
    ['"ab"', '"abcdef"'],
  ],
  "patternProperties that begin differently": [
    { patternProperties: { "^x_": { type: "integer" }, "^y-": { const: "y" } }, additionalProperties: false },
    ['{"x_a":1,"y-":"y"}', "{}"],
    ['{"x_a":"y"}', '{"y-":1}'],
  ],
  "multipleOf without a type": [{ multipleOf: 0.5 }, ["0", "7.5"], ["7.3"]],
  "false in a union": [{ anyOf: [false, { type: "integer" }] }, ["1"], ["null"]],
  "false in a tuple": [{ prefixItems: [{ const: 1 }, false, { const: 3 }] }, ["[1]"], ["[1,2]", "[1,2,3]"]],
  "items beside a tuple of another part": [
    { allOf: [{ prefixItems: [{ type: "integer", minimum: 3 }] }], items: { type: "integer", minimum: 5 } },
    ["[5,6]"],
    ["[3,5]", "[5,4]"],
  ],
  "additionalProperties beside properties of another part": [
    { allOf: [object({ a: true }, { required: ["a"] })], additionalProperties: { type: "boolean" } },
    ['{"a":true}', '{"a":false,"b":true}'],
    ['{"a":1}', '{"a":true,"b":1}'],
  ],
  "bounds without a type": [{ minimum: 3 }, ["3.5", '"x"', "null", "[1]", '{"a":1}'], ["2", "-4"]],
  "a count without a type": [{ minItems: 1 }, ["[1]", '""', "{}", "true"], ["[]"]],
  "a format without a type": [{ format: "email" }, ['"a@b.de"', "12", "[]"], []],
  "contains without a type": [{ contains: { const: 5 } }, ["[5]", "[1,5]", "5"], ["[]", "[1]"]],
  "contains beside unevaluatedItems": [
    { type: "array", contains: { enum: [1, 2] }, unevaluatedItems: false },
    ["[1]", "[2,1]"],
    ["[]", "[3]"],
  ],
  "unevaluatedProperties without a type": [{ unevaluatedProperties: false }, ["{}", "[]", '"x"'], ['{"a":1}']],
  "required without properties": [
    { type: "object", required: ["a", "b"] },
    ['{"b":1,"a":2}', '{"a":1,"b":2,"c":3}'],
    ['{"a":1}', '{"c":1}', "{}"],
  ],
  "required without properties, counted": [
    { type: "object", required: ["a"], minProperties: 3, maxProperties: 4, additionalProperties: { const: 1 } },
    ['{"a":1,"b":1,"c":1}', '{"a":1,"b":1,"c":1,"d":1}'],
    ['{"a":1,"b":1}', '{"a":1,"b":1,"c":1,"d":1,"e":1}', '{"a":1,"b":1,"c":2}'],
  ],
  "dependentRequired without a type": [
    { dependentRequired: { a: ["b"] } },
    ['{"b":1,"a":2}', '{"b":1}', '{"c":1}', "12"],
    ['{"a":1}', '{"a":1,"c":2}'],
  ],
  "dependentSchemas without a type": [
    { dependentSchemas: { a: { properties: { a: { type: "integer" }, b: { type: "integer" } } } } },
    ['{"b":"x"}', '{"a":1,"b":1}', "12", "[]"],
    ['{"a":1,"b":"x"}', '{"a":"x"}'],
  ],
  "not required, and undeclared": [
    { type: "object", not: { required: ["ab"] } },
    ["{}", '{"a":1}', '{"abc":1}'],
    ['{"ab":1}', '{"a":1,"ab":1}'],
  ],
  "oneOf of required properties": [
    object({ a: { const: 1 }, b: { const: 2 } }, { oneOf: [{ required: ["a"] }, { required: ["b"] }] }),
    ['{"a":1}', '{"b":2}'],
    ['{"a":1,"b":2}', "{}"],
  ],
};

const ajv = new Ajv2020({ strict: false, multipleOfPrecision: 9 });

describe("a grammar accepts exactly the values of", () => {
  test.each(Object.entries(CASES))("%s", async (_, [schema, yes, no]) => {
    const check = ajv.compile(schema);
    for (const [texts, fits] of [
      [yes, true],
      [no, false],
    ] as const) {
      for (const text of texts) {
        expect([text, check(JSON.parse(text))]).toEqual([text, fits]); // otherwise the case itself is wrong
        expect([text, await takes(schema, text)]).toEqual([text, fits]);
      }
    }
    let complete = 0;
    for (let seed = 1; seed <= 8; seed++) {
      const got = await answer(compiler, schema, { vocabulary, logits, textOf, seed, limit: 300 });
      if (!got.complete) continue;
      complete++;
      expect([got.text, check(JSON.parse(got.text))]).toEqual([got.text, true]);
    }
    expect(complete).toBeGreaterThan(2);
    expect(schemaGrammar(schema).left).toEqual([]);
  });
});

test.each<[Schema, string]>([
  [object({ a: { type: "array", items: { type: "string" }, uniqueItems: true } }), "$.a.uniqueItems"],
  [{ type: "string", not: { pattern: "^x" } }, "$.not"],
  [{ if: { format: "date" }, ...so({ maxLength: 3 }), type: "string" }, "$.if"],
  [{ type: "integer", multipleOf: 7 }, "$.multipleOf"],
  [{ type: "number", multipleOf: 1e-20, minimum: 1, maximum: 1 }, "$.multipleOf"],
  [{ type: "array", items: { enum: [1, 2] }, contains: { const: 1 }, uniqueItems: true }, "$.contains"],
  [{ $dynamicRef: "#x", type: "string" }, "$.$dynamicRef"],
  [object({ x_a: { enum: [1, "t"] } }, { patternProperties: { "^x_": { type: "integer" } } }), "$.patternProperties"],
  [{ type: "object", patternProperties: { "a*": { type: "integer" }, "^b": { minimum: 2 } } }, "$.patternProperties"],
])("a keyword that is not enforced is reported by its place (%#)", async (schema, place) => {
  expect(schemaGrammar(schema).left).toEqual([place]);
  (await compiler.matcher(schema)).dispose();
});

test.each<[Schema, yes: string, no: readonly string[]]>([
  [{ properties: { a: { type: "integer" } } }, '{"a":1}', ["1", "null", "[]"]],
  [{ additionalProperties: { type: "integer" } }, '{"a":1}', ["1", '"x"']],
  [{ items: { type: "integer" } }, "[1]", ["1", "{}"]],
  [{ prefixItems: [{ type: "integer" }] }, "[1]", ["1", "{}"]],
  [{ maxLength: 3 }, '"abc"', ["1", "null"]],
  [{ pattern: "^a+$" }, '"aa"', ["1", "[]"]],
  [{ format: "date" }, '"2026-11-27"', ["1", "null"]],
])("keywords of one type imply that type (%#)", async (schema, yes, no) => {
  expect(await takes(schema, yes)).toBe(true);
  for (const text of no) expect([text, await takes(schema, text)]).toEqual([text, false]);
});

test("unevaluatedItems counts items that `if` and `contains` evaluate", async () => {
  const allowed = (schema: Schema, texts: readonly string[]): Promise<boolean[]> =>
    Promise.all(texts.map((text) => takes(schema, text)));
  // Ajv evaluates nothing by an `if` alone, and all items by `contains`
  const tuple = { if: { prefixItems: [{ const: "a" }] }, unevaluatedItems: false };
  expect(await allowed(tuple, ['["a"]', "[]", "1", '["b"]', '["a","a"]'])).toEqual([true, true, true, false, false]);
  const list = { contains: { const: 1 }, unevaluatedItems: { const: "a" } };
  expect(await allowed(list, ['["a",1]', "[1,1]", '["a"]', "[1,3]"])).toEqual([true, true, false, false]);
});

test("a condition that no value meets is not enforced, and a recursive schema compiles", async () => {
  expect(schemaGrammar({ enum: ["a"], not: { const: "a" } }).left).toEqual(["$.not"]);
  const node = {
    ...object({ next: { $ref: "#/$defs/node" }, kind: { enum: ["leaf", "inner"] } }, { required: ["kind"] }),
    allOf: [
      {
        if: { properties: { kind: { const: "inner" }, next: { required: ["kind"] } } },
        ...so({ required: ["next"] }),
      },
    ],
  };
  const schema = { $ref: "#/$defs/node", $defs: { node } };
  expect(await takes(schema, '{"next":{"kind":"leaf"},"kind":"inner"}')).toBe(true);
});
