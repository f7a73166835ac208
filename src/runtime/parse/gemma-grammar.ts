/** The grammar of arguments in braces with bare keys and texts between marks, which Gemma's parser reads. */
import { isObject } from "../../base/index.ts";
import { add, ANNOTATIONS, reserve } from "../../engine/index.ts";
import { inOrder } from "./call-grammar.ts";
import type { CallableTool, CallWriter, Schema } from "./call-writer.ts";
import { parseJson } from "./json-calls.ts";
import { propertiesOf } from "./raw-arguments.ts";
import { resolveSchema } from "./typed-values.ts";

/** Nested deeper, values are written as JSON. */
const DEPTH_MAX = 32;

export function gemmaArguments(w: CallWriter, tool: CallableTool, quote: string): string {
  return objectOf(w, tool, { schema: tool.schema, quote, made: new Map(), depth: 0 });
}

interface Value {
  readonly schema: Schema;
  /** Around texts. */
  readonly quote: string;
  /** The rules of schemas, to which references may lead again. */
  readonly made: Map<unknown, string>;
  readonly depth: number;
}

function valueOf(w: CallWriter, tool: CallableTool, value: Value): string {
  const schema = resolveSchema(value.schema, tool.schema) ?? {};
  const known = value.made.get(schema);
  if (known !== undefined) return known;
  const name = reserve(w.rules);
  value.made.set(schema, name);
  add(w.rules, name, expressionOf(w, tool, { ...value, schema }));
  return name;
}

function expressionOf(w: CallWriter, tool: CallableTool, value: Value): string {
  const { schema } = value;
  const { type, enum: listed } = schema;
  const keys = Object.keys(schema).filter((key) => !ANNOTATIONS.has(key));
  const has = (...known: string[]): boolean => keys.every((key) => known.includes(key));
  if (value.depth > DEPTH_MAX) return w.value(schema, tool);
  if (type === "string" && has("type")) return `${w.text(value.quote)} ${w.upTo(value.quote)}`;
  if (Array.isArray(listed) && listed.length > 0 && has("type", "enum")) {
    const texts = listed.map((each) =>
      typeof each === "string" ? value.quote + each + value.quote : JSON.stringify(each),
    );
    return `(${texts.map((text) => w.text(text)).join(" | ")})`;
  }
  if (type === "array" && has("type", "items") && isObject(schema["items"])) {
    const item = valueOf(w, tool, { ...value, schema: schema["items"], depth: value.depth + 1 });
    return `"[" (${item} ("," ${item})*)? "]"`;
  }
  if (
    type === "object" &&
    has("type", "properties", "required", "additionalProperties") &&
    isObject(schema["properties"])
  )
    return objectOf(w, tool, value);
  return w.value(schema, tool);
}

function objectOf(w: CallWriter, tool: CallableTool, value: Value): string {
  const pairs = propertiesOf({ ...tool, schema: value.schema }, tool.schema).map(({ key, schema, isRequired }) => {
    const inner = valueOf(w, tool, { ...value, schema: isObject(schema) ? schema : {}, depth: value.depth + 1 });
    return { expression: `${w.text(keyOf(key))} ":" ${inner}`, isRequired };
  });
  return `"{" ${inOrder(w, pairs, '","')} "}"`;
}

/** A bare key, if it is a word that cannot be read as a value. */
const keyOf = (key: string): string =>
  /^[\p{L}_][\p{L}\p{N}_.-]*$/u.test(key) && parseJson(key) === undefined ? key : JSON.stringify(key);
