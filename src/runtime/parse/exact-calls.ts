/**
 * Calls in the exact spelling of a format: a value may contain any tag except its own end, and a list or an object in
 * JSON may contain even that in its strings.
 */
import type { Tool } from "../requests/runtime.ts";
import type { CallEvent, TextParser } from "./format.ts";
import { callsInJson, makeCall } from "./json-calls.ts";
import { scanToTag, type ToTag } from "./scan.ts";
import { makeTaggedParser } from "./tagged.ts";
import { hasJsonStrings } from "./typed-values.ts";

/** The parts of a call. The patterns are sticky, and include the blanks after a part. */
interface CallPatterns {
  /** The first group is the name. */
  readonly open: RegExp;
  /** The text in front of a value; the first group is the argument. Without it, the value is all arguments in JSON. */
  readonly argument: RegExp;
  /** The text after a value, from the match of its argument. */
  readonly end: (argument: RegExpExecArray) => string;
  /** Absent: a call ends with its last argument. */
  readonly close?: RegExp;
}

export interface ExactCalls {
  readonly patterns: CallPatterns;
  readonly tools: readonly Tool[];
  /** The name of a tool or an argument from its group; absent: the group itself. */
  readonly nameOf?: (group: string) => string;
  /** An argument's value from its text and the match of its pattern. */
  readonly valueOf: (
    at: { readonly name: string; readonly argument: string },
    text: string,
    found: RegExpExecArray,
  ) => unknown;
}

/**
 * The calls in a text that consists of calls; "open": it ends inside a string of JSON; undefined for any other text.
 */
function read(
  text: string,
  { patterns, tools, nameOf = String, valueOf }: ExactCalls,
): CallEvent[] | "open" | undefined {
  const { open, argument: opening, close } = patterns;
  let at = 0;
  const take = (pattern: RegExp): RegExpExecArray | undefined => {
    pattern.lastIndex = at;
    const found = pattern.exec(text) ?? undefined;
    at += found?.[0].length ?? 0;
    return found;
  };
  const calls: CallEvent[] = [];
  for (let found = take(open); found; found = take(open)) {
    const name = nameOf(found[1]!); // it always matches
    const args: (readonly [string, unknown])[] = [];
    let all: string | undefined;
    for (let each = take(opening); each; each = take(opening)) {
      const argument = nameOf(each[1] ?? "").trim();
      const place = { name, argument };
      const end = patterns.end(each);
      const to = endOfValue(text, { from: at, end, isJson: hasJsonStrings(tools, place) });
      if (typeof to !== "number") return to;
      const value = text.slice(at, to);
      if (each[1] === undefined) all = value;
      else args.push([argument, valueOf(place, value, each)]);
      at = to + end.length;
      take(BLANKS);
    }
    if (close && !take(close)) return undefined;
    const call = makeCall(name, all ?? Object.fromEntries(args));
    if (call) calls.push(call);
  }
  return at === text.length && calls.length > 0 ? calls : undefined;
}

const BLANKS = /\s*/y;

/** Makes the parser of such a format. Its models may also write a call as JSON between its tags. */
export function makeExactParser({
  opens,
  closes,
  raw,
  exact,
  closings = [raw.to],
}: Required<Pick<ToTag, "opens" | "closes" | "raw">> & {
  readonly exact: ExactCalls;
  /** Texts that can complete the last argument of a cut body; absent: the end of a raw part. */
  readonly closings?: readonly string[];
}): TextParser {
  return makeTaggedParser({
    opens,
    closes,
    makeScan: () => scanToTag({ opens, closes, raw, isInside: (body) => isInsideJson(body, exact) }),
    callsIn: (body) => (body.trimStart().startsWith("{") ? callsInJson(body) : (exactCalls(body, exact) ?? [])),
    closings,
  });
}

/** The calls in a text that consists of calls; undefined for any other text. */
export function exactCalls(text: string, exact: ExactCalls): CallEvent[] | undefined {
  const calls = read(text, exact);
  return calls === "open" ? undefined : calls;
}

/** Returns whether a body ends inside a string of JSON, so that a tag after it is part of the string. */
export const isInsideJson = (body: string, exact: ExactCalls): boolean => read(body, exact) === "open";

interface ValuePlace {
  readonly from: number;
  /** The text that ends the value. */
  readonly end: string;
  readonly isJson: boolean;
}

/**
 * The end of a value; "open": the text ends inside a string of the value; undefined: the value does not end.
 * @param place.isJson true if lists, objects and strings are in JSON
 */
export function endOfValue(text: string, { from, end, isJson }: ValuePlace): number | "open" | undefined {
  let to = text.indexOf(end, from);
  if (!isJson || !/\s*[[{"]/y.test(text.slice(from, from + BLANKS_MAX))) return to < 0 ? undefined : to;
  const first = to;
  let isInString = false;
  for (let at = from; at < text.length; at++) {
    if (to >= 0 && at > to) to = text.indexOf(end, at);
    if (at === to && !isInString) return to;
    const c = text[at];
    if (c === "\n" && isInString) return first < 0 ? undefined : first; // not JSON
    if (c === "\\" && isInString) at++;
    else if (c === '"') isInString = !isInString;
  }
  return isInString ? "open" : undefined;
}

/** Blanks in front of a value in JSON. */
const BLANKS_MAX = 64;
