/**
 * Reads untrusted values by TypeBox schemas: fills in defaults, applies the schema's transforms, and names the place of
 * an error. A schema's `expected` describes its values in error messages.
 */
import { Type, type StaticDecode, type TObject, type TSchema, type TTransform } from "@sinclair/typebox";
import { TypeCompiler, type TypeCheck, type ValueError } from "@sinclair/typebox/compiler";
import { HasTransform, TransformDecodeError, Value } from "@sinclair/typebox/value";
import { ValueErrorType } from "@sinclair/typebox/errors";
import { nearest, unknownKeyMessage } from "./nearest.ts";

/** Keys and indexes, from the root value. */
export interface SchemaProblem {
  readonly path: readonly (string | number)[];
  readonly message: string;
  /** True for a key that the schema does not have. */
  readonly isUnknownKey?: boolean;
}

export type Read<T> =
  | { readonly success: true; readonly data: T }
  | { readonly success: false; readonly problems: readonly SchemaProblem[] };

export interface Reader<T> {
  readonly schema: TSchema;
  safeParse(value: unknown): Read<T>;
  /** Throws a `SchemaFailure`. */
  parse(value: unknown): T;
}

/** The type of a read value; optional properties may be undefined, as in code. */
export type Output<S extends TSchema> = Undefinable<StaticDecode<S>>;
export type Parsed<R extends Reader<unknown>> = R extends Reader<infer T> ? T : never;

type Undefinable<T> = T extends Uint8Array | string | number | boolean | null | undefined
  ? T
  : T extends readonly unknown[]
    ? { [K in keyof T]: Undefinable<T[K]> }
    : T extends object
      ? { [K in keyof T]: IsOptional<T, K> extends true ? Undefinable<T[K]> | undefined : Undefinable<T[K]> }
      : T;

type IsOptional<T, K extends keyof T> = string extends K ? false : {} extends Pick<T, K> ? true : false;

class SchemaFailure extends Error {
  readonly problems: readonly SchemaProblem[];

  constructor(problems: readonly SchemaProblem[]) {
    super(
      problems
        .map(({ path, message }) => [path.join("."), message].filter((part) => part !== "").join(": "))
        .join("; "),
    );
    this.problems = problems;
  }
}

/** Thrown by a transform for an error that the schema cannot express. Paths are relative to that value. */
class Wrong extends Error {
  readonly problems: readonly SchemaProblem[];

  constructor(problems: readonly SchemaProblem[]) {
    super("");
    this.problems = problems;
  }
}

/** Compiles at first use. */
export function reader<S extends TSchema>(schema: S): Reader<Output<S>> {
  let compiled: TypeCheck<S> | undefined;
  const hasTransform = HasTransform(schema, []);
  const safeParse = (value: unknown): Read<Output<S>> => {
    compiled ??= TypeCompiler.Compile(schema);
    const given = withDefaults(schema, value);
    if (!compiled.Check(given)) return { success: false, problems: problemsOf([...compiled.Errors(given)], given) };
    try {
      return { success: true, data: (hasTransform ? compiled.Decode(given) : given) as Output<S> }; // checked above
    } catch (error) {
      const problems = decodeProblems(error, given);
      if (problems) return { success: false, problems };
      throw error;
    }
  };
  return {
    schema,
    safeParse,
    parse(value) {
      const read = safeParse(value);
      if (read.success) return read.data;
      throw new SchemaFailure(read.problems);
    },
  };
}

/** A copy of a JSON value with defaults filled in; TypeBox's own function also reads inherited properties. */
function withDefaults(schema: TSchema, value: unknown): unknown {
  if (value === undefined) return "default" in schema ? withDefaults(schema, copy(schema["default"])) : undefined;
  if (typeof value !== "object" || value === null) return value;
  const variants = schema["anyOf"] as TSchema[] | undefined;
  if (variants && schema.$id === undefined) {
    const filled = variants.map((variant) => ({ variant, value: withDefaults(variant, value) }));
    return filled.find((each) => Value.Check(each.variant, each.value))?.value ?? copy(value);
  }
  if (Array.isArray(value)) {
    const { items } = schema as { items?: TSchema };
    return items ? value.map((item) => withDefaults(items, item)) : copy(value);
  }
  const known = (schema["properties"] ?? {}) as Readonly<Record<string, TSchema>>;
  const [other] = Object.values((schema["patternProperties"] ?? {}) as Readonly<Record<string, TSchema>>);
  const own = Object.entries(value).map(([key, inner]): [string, unknown] => {
    const schemaOfKey = Object.hasOwn(known, key) ? known[key] : other;
    return [key, schemaOfKey ? withDefaults(schemaOfKey, inner) : copy(inner)];
  });
  const absent = Object.entries(known)
    .filter(([key]) => !Object.hasOwn(value, key))
    .map(([key, inner]): [string, unknown] => [key, withDefaults(inner, undefined)])
    .filter(([, filled]) => filled !== undefined);
  return Object.fromEntries([...own, ...absent]);
}

/** A copy of a JSON value, by own properties alone. */
function copy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copy);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, copy(inner)]));
}

/** An object without other keys. */
export const strictObject = <P extends TObject["properties"]>(properties: P, options: object = {}): TObject<P> =>
  Type.Object(properties, { additionalProperties: false, ...options });

export const nullable = <S extends TSchema>(schema: S, options: object = {}) =>
  Type.Union([schema, Type.Null()], options);

/** A schema as JSON Schema, without the keywords that only readers use. */
export const jsonSchemaOf = (schema: TSchema): Record<string, unknown> =>
  JSON.parse(JSON.stringify(schema, (key, value: unknown) => (key === "expected" ? undefined : value))) as Record<
    string,
    unknown
  >;

export const oneOfTexts = <const T extends readonly string[]>(texts: T, options: object = {}) =>
  Type.Unsafe<T[number]>(
    Type.Union(
      texts.map((text) => Type.Literal(text)),
      { expected: texts.map((text) => `"${text}"`).join(", "), ...options },
    ),
  );

/** Reads a value and transforms it. */
export const changed = <S extends TSchema, T>(schema: S, change: (value: StaticDecode<S>) => T): TTransform<S, T> =>
  Type.Transform(schema)
    .Decode(change)
    .Encode((value) => value as StaticDecode<S>); // values are never encoded

/** Reads a value and transforms it, or reports why it cannot. */
export const readable = <S extends TSchema, T>(
  schema: S,
  read: (value: StaticDecode<S>) => { readonly value: T } | { readonly problem: string },
): TTransform<S, T> =>
  changed(schema, (given) => {
    const found = read(given);
    if ("problem" in found) throw new Wrong([{ path: [], message: found.problem }]);
    return found.value;
  });

/** @param check returns the problem of a value that fits the schema; undefined or empty: none */
export const refined = <S extends TSchema>(
  schema: S,
  check: (value: StaticDecode<S>) => string | readonly SchemaProblem[] | undefined,
): TTransform<S, StaticDecode<S>> =>
  changed(schema, (value) => {
    const wrong = check(value);
    const problems = typeof wrong === "string" ? [{ path: [], message: wrong }] : (wrong ?? []);
    if (problems.length > 0) throw new Wrong(problems);
    return value;
  });

/** Trimmed text that is not blank. */
export const trimmed = (options: object = {}) =>
  changed(Type.String({ pattern: "\\S", expected: "a text that is not blank", ...options }), (text) => text.trim());

/** An http(s) address. */
export const httpUrl = (options: object = {}) =>
  refined(Type.String(options), (text) => {
    const url = URL.parse(text);
    return url && /^https?:$/.test(url.protocol) ? undefined : "Invalid URL";
  });

function decodeProblems(error: unknown, root: unknown): readonly SchemaProblem[] | undefined {
  if (!(error instanceof TransformDecodeError) || !(error.error instanceof Wrong)) return undefined;
  const at = pathOf(error.path, root);
  return error.error.problems.map(({ path, message }) => ({ path: [...at, ...path], message }));
}

/** At most one problem per place. */
function problemsOf(errors: readonly ValueError[], root: unknown): readonly SchemaProblem[] {
  const found = new Map<string, SchemaProblem>();
  for (const error of errors) {
    for (const problem of problemsAt(error, root)) {
      const key = JSON.stringify(problem.path);
      if (!found.has(key)) found.set(key, problem);
    }
  }
  return [...found.values()];
}

function problemsAt(error: ValueError, root: unknown): readonly SchemaProblem[] {
  const path = pathOf(error.path, root);
  const { type, schema } = error;
  if (isPutIn(error)) return [];
  if (type === ValueErrorType.ObjectAdditionalProperties) {
    const message = unknownKeyMessage(
      String(path.at(-1)),
      Object.keys((schema["properties"] as object | undefined) ?? {}),
    );
    return [{ path, message, isUnknownKey: true }];
  }
  if (type === ValueErrorType.Union && schema["expected"] === undefined) {
    const alternatives = error.errors.map((each) => [...each].filter((one) => !isPutIn(one)));
    const tag = wrongTag(alternatives, error.path);
    if (tag) return [{ path: pathOf(tag.at.path, root), message: messageOf(tag.at, tag.expected, tag.words) }];
    const variant = nearestVariant(alternatives, error.path);
    if (variant) return problemsOf(variant, root);
  }
  return [{ path, message: messageOf(error, expectedOf(schema), wordsOf(schema)) }];
}

function messageOf({ type, value, schema }: ValueError, expected: string, words: readonly string[] = []): string {
  if (type === ValueErrorType.ObjectRequiredProperty) return `required: expected ${expected}`;
  const near = typeof value === "string" ? nearest(value.slice(0, WORD_CHARS_MAX), words) : undefined;
  return `expected ${expected}, got ${gotOf(value, schema)}${near === undefined ? "" : `; did you mean "${near}"?`}`;
}

/** Longest text that may be a misspelled word. */
const WORD_CHARS_MAX = 64;

/** The allowed texts, if a schema allows no others. */
function wordsOf(schema: TSchema): readonly string[] {
  const alternatives = "const" in schema ? [schema] : ((schema["anyOf"] as TSchema[] | undefined) ?? []);
  return alternatives.flatMap((each) => (typeof each["const"] === "string" ? [each["const"]] : []));
}

/** True for a missing value whose default is filled in once the rest is valid. */
const isPutIn = ({ value, schema }: ValueError): boolean => value === undefined && "default" in schema;

/** True for the schema of a tag: a text from a fixed list. */
const isTag = ({ schema }: ValueError): boolean =>
  "const" in schema || (Array.isArray(schema["anyOf"]) && schema["expected"] !== undefined);

/** The error of a tag that matches no alternative, with all allowed values. */
function wrongTag(
  alternatives: readonly (readonly ValueError[])[],
  path: string,
): { at: ValueError; expected: string; words: readonly string[] } | undefined {
  const tags = alternatives.map((each) => each.find((error) => isTag(error) && error.path.length > path.length));
  const [at] = tags;
  if (!at || tags.some((each) => each?.path !== at.path)) return undefined;
  const schemas = tags.map((each) => each!.schema);
  return { at, expected: schemas.map(expectedOf).join(", "), words: schemas.flatMap(wordsOf) };
}

/** Problems of the intended alternative: the object's with a matching tag, else the one whose problems nest deepest. */
function nearestVariant(
  alternatives: readonly (readonly ValueError[])[],
  path: string,
): readonly ValueError[] | undefined {
  const variants = alternatives.filter((each) => each.length > 0);
  const inner = variants.filter((each) => each.every((error) => error.path.length > path.length));
  const tagged = inner.filter((each) => !each.some(isTag));
  const [found] = (tagged.length > 0 ? tagged : inner).toSorted((a, b) => a.length - b.length);
  return found;
}

function expectedOf(schema: TSchema): string {
  if (typeof schema["expected"] === "string") return schema["expected"];
  if (Array.isArray(schema["anyOf"])) return (schema["anyOf"] as TSchema[]).map(expectedOf).join(" or ");
  if ("const" in schema) return JSON.stringify(schema["const"]);
  const { type } = schema;
  if (type === "string") return `a text${textLimits(schema)}`;
  if (type === "integer" || type === "number")
    return `${type === "integer" ? "a whole number" : "a number"}${limits(schema)}`;
  if (type === "array") return `a list${listLimits(schema)}`;
  return type === "boolean" ? "true or false" : type === "null" ? "null" : "an object";
}

function textLimits({ minLength, maxLength }: TSchema): string {
  if (minLength === 1 && maxLength === undefined) return " that is not empty";
  return maxLength === undefined ? "" : ` of at most ${String(maxLength)} characters`;
}

function listLimits({ minItems, maxItems }: TSchema): string {
  if (maxItems === undefined) return minItems === undefined ? "" : ` of at least ${String(minItems)}`;
  return ` of ${minItems === undefined ? "" : `${String(minItems)} to `}at most ${String(maxItems)}`;
}

function limits({ minimum, exclusiveMinimum, maximum }: TSchema): string {
  const least = minimum === undefined ? "" : ` from ${String(minimum)}`;
  const above = exclusiveMinimum === undefined ? "" : ` above ${String(exclusiveMinimum)}`;
  return `${least}${above}${maximum === undefined ? "" : ` up to ${String(maximum)}`}`;
}

/** The kind of a value, which may be a secret; the value itself of a number where one is expected. */
function gotOf(value: unknown, { type }: TSchema): string {
  if (typeof value === "number" && (type === "number" || type === "integer")) return String(value);
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === "string") {
    return value === "" ? "an empty text" : `a text of ${value.length} character${value.length === 1 ? "" : "s"}`;
  }
  return { number: "a number", boolean: "a boolean", object: "an object" }[typeof value as string] ?? typeof value;
}

/** The path of a JSON pointer; list indexes become numbers. */
function pathOf(pointer: string, root: unknown): (string | number)[] {
  let at: unknown = root;
  return pointer
    .split("/")
    .slice(1)
    .map((text) => {
      const key = text.replaceAll("~1", "/").replaceAll("~0", "~");
      const isPlace = Array.isArray(at);
      at = (at as Record<string, unknown> | undefined)?.[key];
      return isPlace ? Number(key) : key;
    });
}
