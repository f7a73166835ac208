/** Calls that are written to the letter: a value may contain any tag but its own end. */
import type { CallEvent } from "./format.ts";
import { makeCall } from "./json-calls.ts";

/** Sticky patterns of a call's parts, with the blanks after them. */
interface CallPatterns {
  /** The first group is the name. */
  readonly open: RegExp;
  readonly argument: RegExp;
  /** Absent: a call ends with its last argument. */
  readonly close?: RegExp;
}

/**
 * The calls in a text that has nothing else; undefined for any other text.
 * @param read key and value of an argument from a match of its pattern
 */
export function exactCalls(
  text: string,
  { open, argument, close }: CallPatterns,
  read: (name: string, found: RegExpExecArray) => readonly [string, unknown],
): CallEvent[] | undefined {
  let at = 0;
  const take = (pattern: RegExp): RegExpExecArray | undefined => {
    pattern.lastIndex = at;
    const found = pattern.exec(text) ?? undefined;
    at += found?.[0].length ?? 0;
    return found;
  };
  const calls: CallEvent[] = [];
  for (let found = take(open); found; found = take(open)) {
    const name = found[1]!; // it always matches
    const args: (readonly [string, unknown])[] = [];
    for (let each = take(argument); each; each = take(argument)) args.push(read(name, each));
    if (close && !take(close)) return undefined;
    const call = makeCall(name, Object.fromEntries(args));
    if (call) calls.push(call);
  }
  return at === text.length && calls.length > 0 ? calls : undefined;
}
