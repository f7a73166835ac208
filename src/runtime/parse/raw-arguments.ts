/**
 * The grammar of arguments that a format writes one by one, as text between marks. Texts are written unchanged, all
 * other values as JSON, which `typedValue` reads.
 */
import { AppError, isObject } from "../../base/index.ts";
import {
  ANNOTATIONS,
  countedGrammar,
  FORMATS,
  literal,
  negatedClass,
  patternGrammar,
  repeat,
  union,
} from "../../engine/index.ts";
import type { CallableTool, CallWriter, Schema } from "./call-writer.ts";
import { declaredIn, isLoose, namedTypes, partsOf, resolveSchema, typedValue } from "./typed-values.ts";

/** The marks around one argument. */
interface ArgumentMarks {
  /** The text before the value. */
  readonly open: (key: string, type: string) => string;
  /** An expression between `open` and the value, from the types that the schema names; undefined: it names none. */
  readonly stated?: (types: ReadonlySet<string> | undefined) => string;
  /** Behind the value. */
  readonly close: string;
  /** The part of `close` whose first occurrence ends a text, without the blanks before it; absent: all of `close`. */
  readonly stop?: string;
  /** An expression for any text and the mark that closes it; absent: a text ends at the first closing mark. */
  readonly free?: string;
}

interface Property {
  readonly key: string;
  readonly schema: unknown;
  readonly isRequired: boolean;
}

/** The declared arguments of a tool, in the order of its schema. */
export function propertiesOf({ schema }: CallableTool, root: Schema = schema): Property[] {
  const parts = partsOf(schema, root);
  const declared = declaredIn(parts);
  const required = new Set(parts.flatMap((part) => (Array.isArray(part["required"]) ? part["required"] : [])));
  return [...new Set([...declared.keys(), ...required])]
    .filter((key): key is string => typeof key === "string" && (declared.get(key) !== false || required.has(key)))
    .map((key) => ({ key, schema: declared.get(key) ?? {}, isRequired: required.has(key) }));
}

/** Returns whether a tool allows only the properties that it declares. */
export const isClosed = ({ schema }: CallableTool): boolean => {
  const { properties, additionalProperties } = schema;
  return additionalProperties === undefined || additionalProperties === false
    ? additionalProperties === false || Object.keys(isObject(properties) ? properties : {}).length > 0
    : false;
};

/** Pairs of keys and values in sequence, with blanks between them. */
export function rawArguments(w: CallWriter, tool: CallableTool, marks: ArgumentMarks): string {
  const pairs = propertiesOf(tool).map((property) => rawArgument(w, tool, { ...property, marks }));
  return pairs.length > 0 ? pairs.join(" ") : '""';
}

/** One argument, which may be missing unless it is required. */
export function rawArgument(
  w: CallWriter,
  tool: CallableTool,
  { key, schema, isRequired, marks }: Property & { readonly marks: ArgumentMarks },
): string {
  const types = namedTypes(schema, tool.schema);
  const isText = types?.size === 1 && types.has("string");
  const open = w.text(marks.open(key, isText ? "string" : "json"));
  const stated = marks.stated?.(types) ?? "";
  const pair = w.define(`${open} ${stated} (${rawValue(w, tool, { key, schema, marks, types })}) ${w.ws}`);
  return isRequired ? pair : `(${pair})?`;
}

interface Value {
  readonly key: string;
  readonly schema: unknown;
  readonly marks: ArgumentMarks;
  readonly types: ReadonlySet<string> | undefined;
}

/** A value and its closing mark. */
function rawValue(w: CallWriter, tool: CallableTool, value: Value): string {
  const { key, marks, types } = value;
  const schema = resolveSchema(value.schema, tool.schema) ?? {};
  const close = w.text(marks.close);
  const free = marks.free ?? w.upTo(marks.stop ?? marks.close);
  const listed = Array.isArray(schema["enum"]) ? schema["enum"] : "const" in schema ? [schema["const"]] : undefined;
  if (listed) {
    const tools = [{ type: "function" as const, function: { name: tool.name, parameters: tool.schema } }];
    const texts = listed
      .map((each) => [each, typeof each === "string" ? each : JSON.stringify(each)] as const)
      .filter(([each, text]) => isSame(typedValue(tools, { name: tool.name, argument: key }, text), each));
    if (texts.length > 0) return `(${texts.map(([, text]) => w.text(text)).join(" | ")}) ${close}`;
  }
  if (!types) return free;
  if (!types.has("string")) return `${w.value(schema, tool)} ${close}`;
  if (types.size === 1) return boundedText(w, schema, { ...marks, free }) ?? free;
  if (isLoose(schema)) return free;
  const [texts, others] = [[] as string[], [] as Schema[]];
  for (const branch of branchesOf(schema, tool)) {
    const isFree = namedTypes(branch, tool.schema)?.size === 1 && isLoose(branch) && branch["type"] === "string";
    if (isFree) texts.push(`${UNLIKE_JSON} ${free}`);
    else others.push(branch);
  }
  const json = others.length > 0 ? [`${w.value({ anyOf: others }, tool)} ${close}`] : [];
  return [...json, ...new Set(texts)].join(" | ");
}

/** The alternatives of a union. */
function branchesOf(schema: Schema, tool: CallableTool, depth = 0): Schema[] {
  const { type } = schema;
  if (Array.isArray(type)) return type.map((each: unknown) => ({ ...schema, type: each }));
  const keys = Object.keys(schema).filter((key) => !ANNOTATIONS.has(key));
  const union = keys.length === 1 && (keys[0] === "anyOf" || keys[0] === "oneOf") ? schema[keys[0]] : undefined;
  if (!Array.isArray(union) || depth > UNIONS_DEEP) return [schema];
  return union.flatMap((branch) => branchesOf(resolveSchema(branch, tool.schema) ?? {}, tool, depth + 1));
}

/** Nested deeper, a union counts as one alternative. */
const UNIONS_DEEP = 8;

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Letters that begin no JSON value and no constant: text after such a letter is text. */
const UNLIKE_JSON = "[a-eg-mo-su-zA-EG-MO-SU-Z]";

/** A text with a pattern, a format or lengths; undefined: no such constraint that a grammar can express. */
function boundedText(
  w: CallWriter,
  schema: Schema,
  { close, stop = close, free }: ArgumentMarks & { readonly free: string },
): string | undefined {
  const { pattern, format, minLength, maxLength } = schema;
  const named = typeof format === "string" && Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined;
  const wanted = typeof pattern === "string" ? pattern : named;
  const [first = 0, second = first] = Array.from(stop, (char) => char.codePointAt(0)!); // a text has code points
  if (wanted !== undefined) {
    try {
      const spelling = { excluded: [[first, first] as const], escape: (char: string) => char };
      return `${patternGrammar(wanted, { where: "tools", budget: w.rules.budget, spelling })} ${w.text(close)}`;
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return undefined;
    }
  }
  const min = typeof minLength === "number" ? minLength : 0;
  const char = negatedClass([[first, first]]);
  const counted =
    typeof maxLength === "number" && maxLength >= min
      ? countedGrammar(w.rules, { min, max: maxLength, char, end: '""' })
      : undefined;
  if (counted !== undefined) return `${counted} ${w.text(close)}`;
  if (min === 0) return undefined;
  // the mark cannot begin in these characters
  const unlike = negatedClass(union([[first, first]], [[second, second]]));
  const least = repeat(w.rules.budget, `(${char} | ${literal(String.fromCodePoint(first))} ${unlike})`, {
    min,
    max: min,
    narrow: 0,
    wide: 2,
  });
  return `${least} ${free}`;
}
