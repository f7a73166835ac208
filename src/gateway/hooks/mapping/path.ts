/**
 * Paths into a request in templates and conditions: `headers.x-event`, `payload.items[0].name`, `labels["a.b"]`. A path
 * without a root is a field of the body. Only own properties are followed.
 */
import { AppError, ownValue } from "../../../base/index.ts";
import type { View } from "./request.ts";

const PATH_CHARS_MAX = 512;
const KEYS_MAX = 32;

type Root = keyof View;

export interface ValuePath {
  /** As written. */
  readonly text: string;
  readonly root: Root;
  readonly keys: readonly string[];
}

/** Roots that every mapping has. */
export const ROOTS: readonly Root[] = ["path", "now", "headers", "query", "payload"];

/** Roots without fields: with further keys they are fields of the body. */
const SCALARS: readonly Root[] = ["path", "now", "index"];

/**
 * Throws `bad_request`.
 * @param roots available in this mapping
 */
export function parsePath(source: string, roots: readonly Root[] = ROOTS): ValuePath {
  const text = source.trim();
  if (text === "") throw new AppError("bad_request", "path: expected a key, got an empty text");
  if (text.length > PATH_CHARS_MAX) throw tooLong(`${text.slice(0, 40)}…`, `${PATH_CHARS_MAX} characters`);
  const keys = keysOf(text);
  if (keys.length > KEYS_MAX) throw tooLong(text, `${KEYS_MAX} keys`);
  const root = roots.find((each) => each === keys[0] && (!SCALARS.includes(each) || keys.length === 1));
  if (!root) return { text, root: "payload", keys };
  const rest = keys.slice(1);
  return { text, root, keys: root === "headers" ? rest.map((key) => key.toLowerCase()) : rest };
}

const tooLong = (text: string, most: string): AppError =>
  new AppError("bad_request", `path '${text}': expected at most ${most}`);

/** A sequence of `.key`, `[0]`, `["key"]` or `['key']`. */
const KEY = /\.?([^.[\]]+)|\[\s*(?:"([^"]*)"|'([^']*)'|([^\]"']+))\s*\]/y;

function keysOf(text: string): string[] {
  const keys: string[] = [];
  KEY.lastIndex = 0;
  while (KEY.lastIndex < text.length) {
    const at = KEY.lastIndex;
    const match = KEY.exec(text);
    if (!match || (at === 0 && text.startsWith("."))) {
      throw new AppError("bad_request", `path '${text}': expected a key at '${text.slice(at, at + 20)}'`);
    }
    keys.push(match[1]?.trim() ?? match[2] ?? match[3] ?? match[4]?.trim() ?? "");
  }
  return keys;
}

/** Undefined if the path leads to no value. */
export const valueAt = (view: View, { root, keys }: ValuePath): unknown => ownValue(view[root], keys);

/** True if its value is always text, so that a number can only be meant as text. */
export const isAlwaysText = ({ root }: ValuePath): boolean => root === "headers" || root === "query" || root === "path";
