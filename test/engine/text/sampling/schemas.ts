/** Schemas as clients send them: by hand, from zod, from pydantic; each with a special feature. */

export const SCHEMAS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  zod: {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Person",
    description: "from z.toJSONSchema",
    type: "object",
    properties: {
      name: { type: "string", minLength: 1, description: "full name" },
      age: { type: "integer", minimum: -9007199254740991, maximum: 9007199254740991 },
      email: {
        type: "string",
        format: "email",
        pattern:
          "^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$",
      },
      tags: { default: [], type: "array", items: { type: "string" }, uniqueItems: true },
      role: { type: "string", enum: ["admin", "user"] },
      score: { type: "number", minimum: 0, maximum: 1 },
      nick: { anyOf: [{ type: "string" }, { type: "null" }] },
    },
    required: ["name", "age", "email", "role", "score", "nick"],
    additionalProperties: false,
  },
  pydantic: {
    $defs: {
      Item: {
        properties: {
          sku: { pattern: "^[A-Z]{3}-\\d{2,4}$", title: "Sku", type: "string" },
          count: { exclusiveMinimum: 0, type: "integer" },
        },
        required: ["sku", "count"],
        title: "Item",
        type: "object",
      },
    },
    properties: {
      items: { items: { $ref: "#/$defs/Item" }, maxItems: 4, minItems: 1, title: "Items", type: "array" },
      when: { format: "date", type: "string" },
    },
    required: ["items", "when"],
    title: "Order",
    type: "object",
  },
  optional: { type: "object", properties: { a: { type: "integer" }, b: { type: "null" }, c: { type: "boolean" } } },
  nonEmpty: { type: "object", properties: { a: { type: "integer" }, b: { type: "null" } }, minProperties: 1 },
  recursive: {
    $ref: "#/definitions/node",
    definitions: {
      node: {
        type: "object",
        properties: { value: { type: "integer" }, next: { anyOf: [{ $ref: "#/definitions/node" }, { type: "null" }] } },
        required: ["value", "next"],
      },
    },
  },
  allOf: {
    allOf: [
      { type: "object", properties: { a: { type: "number", minimum: 0 } }, required: ["a"] },
      { properties: { a: { maximum: 5 }, b: { type: "string", enum: ["x", "y"] } }, required: ["b"] },
    ],
  },
  narrowed: { allOf: [{ type: "integer" }, { type: "number", minimum: 0.5, maximum: 3.5 }] },
  patternBesideFormat: { type: "string", format: "email", pattern: "^[a-c]@x\\.org$" },
  besideUnion: {
    type: "object",
    properties: { a: { type: "integer" }, b: { type: "integer" } },
    anyOf: [{ required: ["a"] }, { required: ["b"] }],
  },
  open: {
    type: "object",
    properties: { abc: { type: "integer" }, 'a"': { type: "integer" } },
    additionalProperties: { type: "boolean" },
  },
  record: { type: "object", propertyNames: { enum: ["x", "y"] }, additionalProperties: { type: "number" } },
  patternKeys: {
    type: "object",
    patternProperties: { "^x-[a-z]{1,4}$": { type: "boolean" } },
    additionalProperties: false,
    minProperties: 1,
  },
  counted: { type: "object", additionalProperties: { type: "null" }, minProperties: 1, maxProperties: 3 },
  tuple: { type: "array", prefixItems: [{ type: "string" }, { type: "integer" }], items: false, minItems: 2 },
  literals: { enum: ['a"b', "ü\n", 1, null, { x: [1, "y"] }, [true]] },
  lengths: { type: "object", properties: { code: { type: "string", minLength: 2, maxLength: 6 } }, required: ["code"] },
  number: { type: "number" },
  string: { type: "string" },
  union: { type: ["integer", "null", "boolean"] },
  anything: { type: "object", properties: { payload: {} }, required: ["payload"] },
};
