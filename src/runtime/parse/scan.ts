/**
 * Where the body of a call ends. A scan is given the body so far again and again, each time longer, and looks at every
 * character once.
 */

/** Where a body ends, and how many characters to skip there. */
export interface Cut {
  readonly at: number;
  readonly length: number;
}

/** Undefined: the body goes on, as far as one can see. */
export type Scan = (body: string) => Cut | undefined;

interface BodyTags {
  /** Texts that begin another call, so end this one in front of them. */
  readonly opens: readonly string[];
  /** Texts that end a call. */
  readonly closes: readonly string[];
}

/** Ends at the first tag, whatever stands in front of it. */
export function scanToTag({ opens, closes }: BodyTags): Scan {
  const tags = [...opens, ...closes];
  let at = 0;
  return (body) => {
    for (; at < body.length; at++) {
      const found = tagAt(body, at, tags);
      if (found === "maybe") return undefined;
      if (found) return { at, length: closes.includes(found) ? found.length : 0 };
    }
    return undefined;
  };
}

/**
 * Ends at the first tag outside strings: a tag inside one is part of it. A string that a line break ends was none.
 * @param options.quotes characters that begin and end a string
 */
export function scanToTagOutsideStrings({ opens, closes, quotes = '"' }: BodyTags & { quotes?: string }): Scan {
  const tags = [...opens, ...closes];
  let at = 0;
  let quote = ""; // inside a string
  let isBroken = false;
  return (body) => {
    for (; at < body.length; at++) {
      const c = body[at]!;
      if (quote !== "") {
        if (c === "\\") {
          if (at + 1 >= body.length) return undefined; // what it escapes is still to come
          at++;
        } else if (c === "\n" || c === quote) {
          isBroken ||= c !== quote;
          quote = "";
        }
        continue;
      }
      const found = tagAt(body, at, tags);
      if (found === "maybe") return undefined;
      if (found) return { at, length: closes.includes(found) ? found.length : 0 };
      if (!isBroken && quotes.includes(c)) quote = c;
    }
    return undefined;
  };
}

/**
 * Ends behind the first JSON object or array, where its brackets balance, and behind a closing text after it; or in
 * front of another call, where none has begun.
 * @param options.isStart tells which bracket begins it; text in front of it belongs to the body
 */
export function scanBalanced({
  opens = [],
  closes = [],
  isStart = isBracket,
}: {
  opens?: readonly string[];
  closes?: readonly string[];
  isStart?: (body: string, at: number) => boolean;
} = {}): Scan {
  let at = 0;
  let depth = 0;
  let inString = false;
  let end = 0;
  return (body) => {
    for (; end === 0 && at < body.length; at++) {
      const c = body[at]!;
      if (depth === 0 && !isStart(body, at)) {
        const tag = tagAt(body, at, opens);
        if (tag === undefined) continue;
        return tag === "maybe" ? undefined : { at, length: 0 };
      }
      if (inString) {
        if (c === "\\") {
          if (at + 1 >= body.length) return undefined;
          at++;
        } else if (c === '"') inString = false;
      } else if (c === '"') inString = true;
      else if (c === "{" || c === "[") depth++;
      else if ((c === "}" || c === "]") && --depth === 0) end = at + 1;
    }
    return end === 0 ? undefined : closeBehind(body, end, closes);
  };
}

/** The end of a body whose closing text may be left out. */
function closeBehind(body: string, at: number, closes: readonly string[]): Cut | undefined {
  const rest = body.slice(at).trimStart();
  const close = closes.find((each) => rest.startsWith(each));
  if (close !== undefined) return { at, length: body.length - at - rest.length + close.length };
  return closes.some((each) => each.startsWith(rest)) ? undefined : { at, length: 0 };
}

const isBracket = (body: string, at: number): boolean => body[at] === "{" || body[at] === "[";

/** The longest tag that stands at a place; "maybe" where the text ends inside one. */
function tagAt(text: string, at: number, tags: readonly string[]): string | undefined {
  let found: string | undefined;
  for (const tag of tags) {
    if (text[at] !== tag[0]) continue;
    if (text.startsWith(tag, at)) {
      if (!found || tag.length > found.length) found = tag;
    } else if (text.length - at < tag.length && tag.startsWith(text.slice(at))) return "maybe";
  }
  return found;
}
