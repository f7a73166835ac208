/**
 * A validator of JSON Schema for tests: obvious, slow, and written from the specification rather than from our grammar.
 */
type Schema = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const TYPES: Record<string, (value: unknown) => boolean> = {
  object: isObject,
  array: Array.isArray,
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  integer: Number.isInteger,
  boolean: (value) => typeof value === "boolean",
  null: (value) => value === null,
};

/** The reason why a value does not match a schema; undefined if it does. */
export function misfit(value: unknown, schema: unknown, root: unknown = schema, path = "$"): string | undefined {
  if (schema === true) return undefined;
  if (schema === false) return `${path}: nothing is allowed`;
  const s = schema as Schema;
  const check = (inner: unknown, other: unknown, at = path): string | undefined => misfit(inner, other, root, at);
  if (typeof s["$ref"] === "string") {
    const target = s["$ref"]
      .split("/")
      .slice(1)
      .map((part) => decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~"))
      .reduce<unknown>((at, key) => (at as Schema)[key], root);
    const why = check(value, target);
    if (why) return why;
  }
  const types = s["type"] === undefined ? undefined : [s["type"]].flat();
  if (types && !types.some((type) => TYPES[String(type)]!(value))) return `${path}: not of type ${types.join()}`;
  const list = (s["enum"] ?? ("const" in s ? [s["const"]] : undefined)) as unknown[] | undefined;
  if (list && !list.some((each) => Bun.deepEquals(each, value))) return `${path}: not among ${JSON.stringify(list)}`;
  for (const part of (s["allOf"] ?? []) as unknown[]) {
    const why = check(value, part);
    if (why) return why;
  }
  for (const key of ["anyOf", "oneOf"]) {
    const parts = s[key] as unknown[] | undefined;
    if (parts && parts.every((part) => check(value, part))) return `${path}: fits nothing of ${key}`;
  }
  if (typeof value === "number") return misfitNumber(value, s, path);
  if (typeof value === "string") return misfitString(value, s, path);
  if (Array.isArray(value)) return misfitArray(value, s, { path, check });
  return isObject(value) ? misfitObject(value, s, { path, check }) : undefined;
}

type Check = { path: string; check: (value: unknown, schema: unknown, at: string) => string | undefined };

function misfitNumber(value: number, s: Schema, path: string): string | undefined {
  const bounds = [
    value >= Number(s["minimum"] ?? -Infinity),
    value <= Number(s["maximum"] ?? Infinity),
    value > Number(s["exclusiveMinimum"] ?? -Infinity),
    value < Number(s["exclusiveMaximum"] ?? Infinity),
  ];
  return bounds.every(Boolean) ? undefined : `${path}: ${value} is out of bounds`;
}

function misfitString(value: string, s: Schema, path: string): string | undefined {
  const length = [...value].length;
  if (length < Number(s["minLength"] ?? 0)) return `${path}: too short`;
  if (length > Number(s["maxLength"] ?? Infinity)) return `${path}: too long`;
  if (typeof s["pattern"] === "string" && !new RegExp(s["pattern"], "u").test(value))
    return `${path}: ${value} does not match`;
  return undefined;
}

function misfitArray(value: unknown[], s: Schema, { path, check }: Check): string | undefined {
  if (value.length < Number(s["minItems"] ?? 0)) return `${path}: too few items`;
  if (value.length > Number(s["maxItems"] ?? Infinity)) return `${path}: too many items`;
  const prefix = (s["prefixItems"] ?? []) as unknown[];
  for (const [i, item] of value.entries()) {
    const why = check(item, i < prefix.length ? prefix[i] : (s["items"] ?? true), `${path}[${i}]`);
    if (why) return why;
  }
  return undefined;
}

function misfitObject(value: Record<string, unknown>, s: Schema, { path, check }: Check): string | undefined {
  const declared = (s["properties"] ?? {}) as Record<string, unknown>;
  const patterns = Object.entries((s["patternProperties"] ?? {}) as object);
  for (const name of (s["required"] ?? []) as string[])
    if (!Object.hasOwn(value, name)) return `${path}: lacks ${name}`;
  if (Object.keys(value).length < Number(s["minProperties"] ?? 0)) return `${path}: too few properties`;
  if (Object.keys(value).length > Number(s["maxProperties"] ?? Infinity)) return `${path}: too many properties`;
  for (const [name, inner] of Object.entries(value)) {
    const at = `${path}.${name}`;
    const why = s["propertyNames"] === undefined ? undefined : check(name, s["propertyNames"], at);
    if (why) return why;
    const matching = patterns
      .filter(([pattern]) => new RegExp(pattern, "u").test(name))
      .map(([, each]) => each as unknown);
    const known = Object.hasOwn(declared, name) ? [declared[name], ...matching] : matching;
    for (const each of known.length > 0 ? known : [s["additionalProperties"] ?? true]) {
      const misfits = check(inner, each, at);
      if (misfits) return misfits;
    }
  }
  return undefined;
}
