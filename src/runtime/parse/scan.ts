/** Finds the end of a call's body. A scan gets the growing body repeatedly and reads every character once. */

/** The end of a body, and the number of characters to skip there. */
export interface Cut {
  readonly at: number;
  readonly length: number;
}

/** Undefined: the body does not end yet. */
export type Scan = (body: string) => Cut | undefined;

/** Texts around a part of a body in which no tag counts. */
interface RawPart {
  readonly from: string;
  readonly to: string;
}

interface BodyTags {
  /** Texts that begin another call, and so end the call before them. */
  readonly opens: readonly string[];
  /** Texts that end a call. */
  readonly closes: readonly string[];
}

/** Tags of one body that may stand inside its values; more are taken for its end. */
const INSIDE_MAX = 64;

export interface ToTag extends BodyTags {
  readonly raw?: RawPart;
  /** Returns whether a body ends inside a value, so that a tag after it is part of the value. */
  readonly isInside?: (body: string) => boolean;
}

/** Ends at the first tag outside raw parts and values, regardless of the text before it. */
export function scanToTag({ opens, closes, raw, isInside = () => false }: ToTag): Scan {
  const tags = [...opens, ...closes, ...(raw ? [raw.from] : [])];
  let at = 0;
  let isRaw = false;
  let inside = 0; // tags in values
  return (body) => {
    for (; at < body.length; at++) {
      const found = tagAt(body, at, isRaw && raw ? [raw.to] : tags);
      if (found === "maybe") return undefined;
      if (raw && found !== undefined && (isRaw || found === raw.from)) {
        isRaw = !isRaw;
        at += found.length - 1;
      } else if (found && inside < INSIDE_MAX && isInside(body.slice(0, at))) {
        inside++;
        at += found.length - 1;
      } else if (found) return { at, length: closes.includes(found) ? found.length : 0 };
    }
    return undefined;
  };
}

/** The parts of a text between a tag, where that stands outside strings. */
export function splitOutsideStrings(text: string, tag: string): string[] {
  const parts: string[] = [];
  for (let rest = text; ;) {
    const cut = scanToTagOutsideStrings({ opens: [], closes: [tag] })(rest);
    if (!cut) return [...parts, rest];
    parts.push(rest.slice(0, cut.at));
    rest = rest.slice(cut.at + cut.length);
  }
}

/**
 * Ends at the first tag outside strings: a tag inside one is part of it. A line break in a string means that its quote
 * did not begin one.
 * @param options.quotes characters that delimit strings
 */
export function scanToTagOutsideStrings({ opens, closes, quotes = '"' }: BodyTags & { quotes?: string }): Scan {
  const tags = [...opens, ...closes];
  let at = 0;
  let quote = ""; // the quote of the current string
  let isBroken = false;
  return (body) => {
    for (; at < body.length; at++) {
      const c = body[at]!;
      if (quote !== "") {
        if (c === "\\") {
          if (at + 1 >= body.length) return undefined; // the escaped character has not arrived
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
 * Ends after the first JSON object or array, where its brackets balance, or before another call, if none has begun.
 * @param options.isStart returns whether a bracket begins it; text before it belongs to the body
 */
export function scanBalanced({
  opens = [],
  isStart = isBracket,
}: {
  opens?: readonly string[];
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
    return end === 0 ? undefined : { at: end, length: 0 };
  };
}

const isBracket = (body: string, at: number): boolean => body[at] === "{" || body[at] === "[";

/** The longest tag at a position; "maybe" if the text ends inside a tag. */
export function tagAt(text: string, at: number, tags: readonly string[]): string | undefined {
  let found: string | undefined;
  for (const tag of tags) {
    if (text[at] !== tag[0]) continue;
    if (text.startsWith(tag, at)) {
      if (!found || tag.length > found.length) found = tag;
    } else if (text.length - at < tag.length && tag.startsWith(text.slice(at))) return "maybe";
  }
  return found;
}
