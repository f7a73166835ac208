/**
 * Reads untrusted values: JSON from a client, a file, a model or a tool. A value has the expected kind, or the error
 * names its place. Null counts as absent.
 */
import { AppError } from "./errors.ts";

export type Fields = Readonly<Record<string, unknown>>;

/** Reads one value; `path` is where it stands in the request, such as `messages.0.content`. */
export type Read<T> = (value: unknown, path: string) => T;

/** True for an object that is not an array. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** The value at the end of a path of own properties; undefined if the path does not exist. */
export function ownValue(value: unknown, keys: readonly (string | number)[]): unknown {
  let inner = value;
  for (const key of keys) {
    if (typeof inner !== "object" || inner === null || !Object.hasOwn(inner, key)) return undefined;
    inner = (inner as Record<string | number, unknown>)[key]; // own, as just checked
  }
  return inner;
}

/** Throws `bad_request`. */
export const readText: Read<string> = (value, path) => {
  if (typeof value !== "string") throw unexpected(path, "a string", value);
  return value.toWellFormed();
};

/** A text that is not empty. Throws `bad_request`. */
export const readName: Read<string> = (value, path) => {
  const name = readText(value, path);
  if (name === "") throw unexpected(path, "a name", name);
  return name;
};

/** Throws `bad_request`. */
export const readBoolean: Read<boolean> = (value, path) => {
  if (typeof value !== "boolean") throw unexpected(path, "true or false", value);
  return value;
};

/** Throws `bad_request`. */
export const readFields: Read<Fields> = (value, path) => {
  if (!isObject(value)) throw unexpected(path, "an object", value);
  return value;
};

/** Throws `bad_request`, and whatever `read` throws. */
export const readList =
  <T>(read: Read<T>): Read<T[]> =>
  (value, path) => {
    if (!Array.isArray(value)) throw unexpected(path, "an array", value);
    return value.map((item, i) => read(item, `${path}.${i}`));
  };

/** Undefined for an absent value. */
export const optional =
  <T>(read: Read<T>): Read<T | undefined> =>
  (value, path) =>
    value === undefined || value === null ? undefined : read(value, path);

/** A `bad_request` that describes the actual value. */
export const unexpected = (path: string, expected: string, value: unknown): AppError =>
  new AppError("bad_request", `${path}: expected ${expected}, got ${shown(value)}`);

/** A short description of a value: a shortened text, the kind of a list or an object. */
export function shown(value: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value === "string") return JSON.stringify(value.slice(0, 80).toWellFormed());
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" && value !== null ? "an object" : String(value);
}
