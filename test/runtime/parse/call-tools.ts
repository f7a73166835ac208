/** Tools with awkward parameters, and a judge of calls to them that is not ours: Ajv. */
import { Ajv2020 } from "ajv/dist/2020.js";
import type { Tool } from "../../../src/runtime/requests/runtime.ts";
import { randomSchema } from "../../engine/text/sampling/random-schema.ts";

const tool = (name: string, parameters?: unknown): Tool => ({
  type: "function",
  function: { name, description: `Does ${name}.`, ...(parameters === undefined ? {} : { parameters }) },
});

export const NESTED = {
  type: "object",
  properties: {
    text: { type: "string" },
    count: { type: "integer", minimum: -5, maximum: 99 },
    unit: { type: "string", enum: ["m/s", 'a "b"', "<x>\n", "12", "", " padded ", "back\\slash", "中"] },
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

const UNIONS = {
  type: "object",
  properties: {
    target: {
      oneOf: [
        {
          type: "object",
          properties: { kind: { const: "file" }, path: { type: "string" } },
          required: ["kind", "path"],
        },
        { type: "object", properties: { kind: { const: "line" }, at: { type: "integer" } }, required: ["kind", "at"] },
        { type: "null" },
      ],
    },
    value: { type: ["integer", "boolean", "null"] },
    mixed: { anyOf: [{ type: "array", items: { type: "integer" } }, { type: "string" }, { type: "boolean" }] },
    number: { anyOf: [{ type: "number" }, { type: "string", enum: ["auto", "none"] }] },
    only: { const: 'it\'s "fixed"\n' },
    none: { type: "null" },
  },
  required: ["target", "value", "mixed"],
  additionalProperties: false,
};

const NAMES = { type: "string", pattern: "^[A-Za-z][A-Za-z-]*$" };

/** Names that look like something else, and properties that no schema declares. */
const OPEN = {
  type: "object",
  properties: {
    "a b": { type: "integer" },
    größe: { type: "string" },
    "x-1": { type: "boolean" },
    null: { type: "string" },
    headers: { type: "object", propertyNames: NAMES, additionalProperties: { type: "string" } },
    flags: { type: "object", patternProperties: { "^is[A-Z]$": { type: "boolean" } }, additionalProperties: false },
    any: {},
  },
  required: ["headers"],
};

const SHORT = { type: "object", properties: { n: { type: "integer" } } };
const FREE = { type: "object", propertyNames: NAMES, additionalProperties: { type: ["integer", "string"] } };

/** The tools of a series of calls; the same number gives the same. */
export const awkwardTools = (series: number): Tool[] => [
  tool("look_up", NESTED),
  tool("now"),
  tool("now_there", {}),
  tool("plant", TREE),
  tool("unions", UNIONS),
  tool("open", OPEN),
  tool("free", FREE),
  tool("random", randomSchema(series)),
  tool("server.get-it_2", SHORT),
  tool("l".repeat(64), SHORT),
];

const ajvs = new Map<string, (value: unknown) => string | undefined>();

/** The reason why Ajv refuses the arguments of a call; undefined: they fit. */
export function misfitOf(tools: readonly Tool[], call: { readonly name: string; readonly arguments: unknown }) {
  const offered = tools.find(({ function: { name } }) => name === call.name);
  if (!offered) return `'${call.name}' is not offered`;
  const { parameters = {} } = offered.function;
  const schema = Object.keys(parameters as object).length > 0 ? parameters : { maxProperties: 0 };
  const key = JSON.stringify(schema);
  const judge = ajvs.get(key) ?? judgeOf(schema as object);
  ajvs.set(key, judge);
  return judge(call.arguments);
}

function judgeOf(schema: object): (value: unknown) => string | undefined {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  const asGrammar = JSON.stringify(schema).replaceAll('"oneOf":', '"anyOf":'); // as docs/api.md says
  const isValid = ajv.compile(JSON.parse(asGrammar) as object);
  return (value) => (isValid(value) ? undefined : ajv.errorsText(isValid.errors));
}
