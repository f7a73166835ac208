import { Type } from "@sinclair/typebox";
import { describe, expect, test } from "bun:test";
import {
  changed,
  httpUrl,
  jsonSchemaOf,
  oneOfTexts,
  reader,
  refined,
  strictObject,
  trimmed,
} from "../../src/base/schema.ts";

const shape = reader(
  strictObject({
    name: trimmed(),
    level: oneOfTexts(["low", "high"], { default: "low" }),
    at: Type.Optional(Type.Integer({ minimum: 1, maximum: 9 })),
    url: Type.Optional(httpUrl()),
    rate: strictObject({ burst: Type.Integer({ default: 3 }) }, { default: {} }),
    list: Type.Array(
      Type.Union([
        strictObject({ kind: Type.Literal("a"), size: Type.Number() }),
        strictObject({ kind: Type.Literal("b"), text: Type.String({ default: "x" }) }),
      ]),
      { default: [] },
    ),
    pair: Type.Optional(
      refined(strictObject({ from: Type.Number(), to: Type.Number() }), ({ from, to }) =>
        from > to ? [{ path: ["to"], message: "before from" }] : undefined,
      ),
    ),
  }),
);

const problems = (value: unknown): string[] => {
  const read = shape.safeParse(value);
  return read.success ? [] : read.problems.map(({ path, message }) => `${path.join(".")}: ${message}`);
};

test("parsing fills in defaults at every depth, trims texts, and leaves the input unchanged", () => {
  const given = { name: " Ada ", list: [{ kind: "b" }] };
  expect<unknown>(shape.parse(given)).toEqual({
    name: "Ada",
    level: "low",
    rate: { burst: 3 },
    list: [{ kind: "b", text: "x" }],
  });
  expect(given).toEqual({ name: " Ada ", list: [{ kind: "b" }] });
});

describe("an error names the place, the expectation, and no value but a number", () => {
  test.each<[unknown, string[]]>([
    [undefined, [": expected an object, got nothing"]],
    [[], [": expected an object, got a list of 0"]],
    [{}, ["name: required: expected a text that is not blank"]],
    [{ name: "  " }, ["name: expected a text that is not blank, got a text of 2 characters"]],
    [{ name: "a", levle: "low" }, ["levle: unknown key; did you mean 'level'?"]],
    [{ name: "a", zebra: 1 }, ["zebra: unknown key"]],
    [{ name: "a", level: "sesame" }, ['level: expected "low", "high", got a text of 6 characters']],
    [{ name: "a", at: 10 }, ["at: expected a whole number from 1 up to 9, got 10"]],
    [{ name: "a", url: "file:///etc" }, ["url: Invalid URL"]],
    [{ name: "a", rate: [] }, ["rate: expected an object, got a list of 0"]],
    [{ name: "a", rate: { burst: "x" } }, ["rate.burst: expected a whole number, got a text of 1 character"]],
    [{ name: "a", list: [{ kind: "a", size: "x" }] }, ["list.0.size: expected a number, got a text of 1 character"]],
    [{ name: "a", list: [{ kind: "b", txet: 1 }] }, ["list.0.txet: unknown key; did you mean 'text'?"]],
    [{ name: "a", list: [{ kind: "c", size: 1 }] }, ['list.0.kind: expected "a", "b", got a text of 1 character']],
    [{ name: "a", list: [{ size: 1 }] }, ['list.0.kind: required: expected "a", "b"']],
    [{ name: "a", pair: { from: 2, to: 1 } }, ["pair.to: before from"]],
    [{ name: 5, at: 0, b: 1 }, ["b: unknown key", expect.stringMatching(/^name: /), expect.stringMatching(/^at: /)]],
  ])("%j", (value, wanted) => {
    expect(problems(value)).toEqual(wanted);
  });

  test("parse throws the error", () => {
    expect(() => shape.parse({})).toThrow("name: required");
  });
});

test("inherited properties are not keys", () => {
  const keys = reader(strictObject({ values: Type.Optional(Type.Union([Type.Object({}), Type.Null()])) }));
  expect(keys.safeParse([]).success).toBe(false);
  expect(keys.safeParse(JSON.parse('{"__proto__":{"values":1}}')).success).toBe(false);
});

test("an exception in a change is thrown, not reported as a problem of the value", () => {
  const broken = reader(
    changed(Type.String(), () => {
      throw new Error("a bug");
    }),
  );
  expect(() => broken.safeParse("x")).toThrow("a bug");
});

test("a JSON Schema omits the descriptions for people", () => {
  expect(jsonSchemaOf(strictObject({ a: Type.Integer({ expected: "a year", minimum: 1 }) }))).toEqual({
    type: "object",
    properties: { a: { type: "integer", minimum: 1 } },
    required: ["a"],
    additionalProperties: false,
  });
});
