/** Calls in Python: `[get_weather(city="Oslo", days=2)]`, with literals as arguments. */
import type { CallEvent } from "./format.ts";

/** Maximum nesting of lists and dicts in an argument. */
const DEPTH_MAX = 64;

/** The text is not a call in this format. */
class NotPython extends Error {}

/**
 * The calls in a text: in brackets, or one after another. Empty if any part is not a call.
 * @param options.suffix text after a function's name that does not belong to it
 */
export function callsInPython(text: string, { suffix = "" }: { suffix?: string } = {}): CallEvent[] {
  const reader = makeReader(text);
  try {
    const calls: CallEvent[] = [];
    const isList = reader.takes("[");
    while (!reader.atEnd() && !(isList && reader.peeks("]"))) {
      calls.push(readCall(reader, suffix));
      if (!reader.takes(",") && isList && !reader.peeks("]")) return [];
    }
    if (isList && !reader.takes("]")) return [];
    return reader.atEnd() ? calls : [];
  } catch (error) {
    if (error instanceof NotPython) return [];
    throw error;
  }
}

/** The value of a text that is one list, tuple or dict of Python; undefined for any other text. */
export function literalInPython(text: string): unknown {
  const reader = makeReader(text);
  if (!["[", "(", "{"].some((open) => reader.peeks(open))) return undefined;
  try {
    const value = readValue(reader, 0);
    return reader.atEnd() ? value : undefined;
  } catch (error) {
    if (error instanceof NotPython) return undefined;
    throw error;
  }
}

type Reader = ReturnType<typeof makeReader>;

/** Reads tokens and skips white space. */
function makeReader(text: string) {
  let at = 0;
  const skip = (): void => {
    while (at < text.length && /\s/.test(text[at]!)) at++;
  };
  const match = (pattern: RegExp): string | undefined => {
    skip();
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) at += found.length;
    return found;
  };
  const peeks = (token: string): boolean => {
    skip();
    return text.startsWith(token, at);
  };
  return {
    match,
    peeks,
    takes: (token: string): boolean => {
      if (!peeks(token)) return false;
      at += token.length;
      return true;
    },
    atEnd: (): boolean => {
      skip();
      return at >= text.length;
    },
  };
}

function expectToken(reader: Reader, token: string): void {
  if (!reader.takes(token)) throw new NotPython();
}

function readCall(reader: Reader, suffix: string): CallEvent {
  const name = reader.match(/[\p{L}_][\p{L}\p{N}_.-]*/uy);
  if (name === undefined || !name.endsWith(suffix)) throw new NotPython();
  expectToken(reader, "(");
  const args: [string, unknown][] = [];
  while (!reader.takes(")")) {
    const key = reader.match(/[\p{L}_][\p{L}\p{N}_-]*/uy);
    if (key === undefined) throw new NotPython();
    expectToken(reader, "=");
    args.push([key, readValue(reader, 0)]);
    if (!reader.takes(",") && !reader.peeks(")")) throw new NotPython();
  }
  const bare = name.slice(0, name.length - suffix.length);
  return { kind: "toolCall", name: bare, arguments: Object.fromEntries(args) };
}

const WORDS: Readonly<Record<string, unknown>> = {
  True: true,
  False: false,
  None: null,
  true: true,
  false: false,
  null: null,
};

/** A literal of Python or JSON. */
function readValue(reader: Reader, depth: number): unknown {
  if (depth > DEPTH_MAX) throw new NotPython();
  if (reader.takes("[")) return readItems(reader, { close: "]", depth });
  if (reader.takes("(")) return readItems(reader, { close: ")", depth });
  if (reader.takes("{")) return readDict(reader, depth);
  const text = reader.match(/"(?:[^"\\]|\\[^])*"|'(?:[^'\\]|\\[^])*'/y);
  if (text !== undefined) return unquote(text);
  const number = reader.match(/[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?/y);
  if (number !== undefined) return Number(number.replaceAll("_", ""));
  const word = reader.match(/[A-Za-z]+/y);
  if (word === undefined || !Object.hasOwn(WORDS, word)) throw new NotPython();
  return WORDS[word];
}

function readItems(reader: Reader, { close, depth }: { close: string; depth: number }): unknown[] {
  const items: unknown[] = [];
  while (!reader.takes(close)) {
    items.push(readValue(reader, depth + 1));
    if (!reader.takes(",") && !reader.peeks(close)) throw new NotPython();
  }
  return items;
}

function readDict(reader: Reader, depth: number): Record<string, unknown> {
  const entries: [string, unknown][] = [];
  while (!reader.takes("}")) {
    const key = readValue(reader, depth + 1);
    expectToken(reader, ":");
    entries.push([String(key), readValue(reader, depth + 1)]);
    if (!reader.takes(",") && !reader.peeks("}")) throw new NotPython();
  }
  return Object.fromEntries(entries);
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f", "0": "\0", "\n": "" };

function unquote(literal: string): string {
  return literal
    .slice(1, -1)
    .replace(/\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([^]))/g, (_, long?: string, short?: string, c?: string) => {
      const code = long ?? short;
      if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16));
      return ESCAPES[c!] ?? c!; // one of the three groups matched
    });
}
