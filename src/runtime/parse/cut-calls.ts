/** Calls in a body that was cut: all are whole but the last, which has part of its arguments. */
import { closePrefix } from "../../base/json-prefix.ts";
import type { CallEvent, CutCallEvent } from "./format.ts";
import { parseJson } from "./json-calls.ts";

interface CutBody {
  /** The body as the model wrote it, with the white space before it. */
  readonly text: string;
  readonly callsIn: (body: string) => readonly CallEvent[];
  /** What may close a body of this format, beside brackets; tried in order. */
  readonly closings?: readonly string[] | undefined;
}

/** None where the body does not tell the name of a tool yet, or cannot be closed. */
export function cutCallsIn(body: string, { text, callsIn, closings = [] }: CutBody): (CallEvent | CutCallEvent)[] {
  const closed = closeLast(body);
  let calls: readonly CallEvent[] = [];
  for (const begun of [body, closed.text]) {
    for (const closing of ["", ...closings]) if (calls.length === 0) calls = callsIn(begun + closing);
  }
  const last = calls.at(-1);
  if (!last) return [];
  const json = JSON.stringify(last.arguments);
  const isWhole =
    closed.kept.trimEnd().endsWith("}") && json === JSON.stringify(callsIn(closed.more).at(-1)?.arguments);
  const args = isWhole ? json : (writtenAs(json, body, closed.open) ?? json.replace(/^\{\}$|"?\}$/, ""));
  return [...calls.slice(0, -1), { kind: "cutCall", name: last.name, arguments: args, text }];
}

/** Brackets inside one another that may be those of arguments. */
const DEPTH_MAX = 8;

/** The text of arguments from the bracket that begins it, as far as it was written; undefined where it is no JSON. */
function writtenAs(json: string, body: string, open: readonly number[]): string | undefined {
  const isBegun = (place: number): boolean => JSON.stringify(parseJson(closePrefix(body.slice(place)).text)) === json;
  const place = open.slice(0, DEPTH_MAX).find(isBegun);
  return place === undefined ? undefined : body.slice(place);
}

/**
 * Closes the brackets that are open at the end.
 * @returns `kept` of the body; `more`: with something more where it was cut, nothing where there is no such place;
 * `open`: where the brackets stand
 */
function closeLast(body: string) {
  for (let start = nextBracket(body, 0); start >= 0;) {
    const before = body.slice(0, start);
    const { text, length, rest, more, open } = closePrefix(body.slice(start));
    if (length === undefined) {
      const kept = body.slice(0, body.length - rest.length);
      const places = open.map((place) => start + place);
      return { text: before + text, kept, more: more ? before + more : "", open: places };
    }
    start = nextBracket(body, start + length);
  }
  return { text: body, kept: body, more: parseJson(body) === undefined ? "" : body, open: [] };
}

function nextBracket(text: string, from: number): number {
  const found = /[[{(]/.exec(text.slice(from));
  return found ? from + found.index : -1;
}
