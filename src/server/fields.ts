/**
 * Reads JSON whose shape depends on what it says it is: a value of the expected kind, or an error that names its place.
 * Null counts as absent.
 */
import { AppError } from "../base/index.ts";
import { kindOf } from "./http/decode.ts";

export type Fields = Readonly<Record<string, unknown>>;

/** Reads one value; `path` is where it stands in the request, such as `messages.0.content`. */
export type Read<T> = (value: unknown, path: string) => T;

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

export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Throws `bad_request`. */
export const readFields: Read<Fields> = (value, path) => {
  if (!isFields(value)) throw unexpected(path, "an object", value);
  return value;
};

/** Throws `bad_request`, also for what `read` refuses. */
export const readList =
  <T>(read: Read<T>): Read<T[]> =>
  (value, path) => {
    if (!Array.isArray(value)) throw unexpected(path, "an array", value);
    return value.map((item, i) => read(item, `${path}.${i}`));
  };

/** Undefined where there is nothing. */
export const optional =
  <T>(read: Read<T>): Read<T | undefined> =>
  (value, path) =>
    value === undefined || value === null ? undefined : read(value, path);

/** A `bad_request` that says what was there. */
export function unexpected(path: string, expected: string, value: unknown): AppError {
  return new AppError("bad_request", `${path}: expected ${expected}, got ${shown(value)}`);
}

function shown(value: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value === "string") return JSON.stringify(value.slice(0, 80));
  return typeof value === "object" && value !== null ? kindOf(value) : String(value);
}
