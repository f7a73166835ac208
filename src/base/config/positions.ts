/**
 * The lines on which the values of a JSON5 text begin, by path. The text must be valid: this finds places and checks
 * nothing.
 */

import JSON5 from "json5";

/** Keys and indexes from the root. */
export type Path = readonly (string | number)[];

/** A path as one text, for lookups. */
export const pathKey = (path: Path): string => JSON.stringify(path.map(String));

interface Frame {
  readonly isArray: boolean;
  /** The key or index whose value comes next. */
  key: string | number;
  /** True if the next word in an object is a key. */
  wantsKey: boolean;
  /** Keys of the object so far. */
  readonly keys: Set<string>;
}

/** Comments, texts, punctuation and anything else. */
export const TOKEN =
  /\/\/[^\n\r\u2028\u2029]*|\/\*[\s\S]*?\*\/|"(?:\\[\s\S]|[^"\\])*"|'(?:\\[\s\S]|[^'\\])*'|[{}[\]:,]|[^\s{}[\]:,"'/]+/g;

export interface Positions {
  /** Line numbers from 1, by `pathKey`; for a repeated key, the line of the last one, which counts. */
  readonly lines: ReadonlyMap<string, number>;
  /** Keys that occur twice in their object. */
  readonly repeated: readonly { readonly key: string; readonly line: number }[];
}

export function positionsOf(text: string): Positions {
  const lines = new Map<string, number>();
  const repeated: Positions["repeated"][number][] = [];
  const frames: Frame[] = [];
  let line = 1;
  let at = 0;
  const place = (): void => void lines.set(pathKey(frames.map((frame) => frame.key)), line);
  for (const match of text.matchAll(TOKEN)) {
    line += lineBreaks(text.slice(at, match.index));
    at = match.index;
    const [token] = match;
    const frame = frames.at(-1);
    if (token.startsWith("//") || token.startsWith("/*")) continue;
    if (token === "{" || token === "[") {
      if (!(frame && !frame.isArray)) place(); // in an object, the key has a position already
      frames.push({ isArray: token === "[", key: token === "[" ? 0 : "", wantsKey: token === "{", keys: new Set() });
    } else if (token === "}" || token === "]") frames.pop();
    else if (token === ",") {
      if (frame?.isArray) frame.key = Number(frame.key) + 1;
      else if (frame) frame.wantsKey = true;
    } else if (token === ":") {
      if (frame) frame.wantsKey = false;
    } else if (frame?.wantsKey) {
      frame.key = keyOf(token);
      if (frame.keys.has(frame.key)) repeated.push({ key: frame.key, line });
      frame.keys.add(frame.key);
      place();
    } else if (frame?.isArray ?? true) place();
  }
  return { lines, repeated };
}

const keyOf = (token: string): string => (/^["']/.test(token) ? JSON5.parse<string>(token) : token);

const lineBreaks = (text: string): number => text.match(/\r\n|[\n\r\u2028\u2029]/g)?.length ?? 0;
