/** Reads the calls in a body that was cut: the arguments of the last one are partial. */
import { closePrefix } from "../requests/json-prefix.ts";
import type { CallEvent, CutCallEvent } from "./format.ts";
import { parseJson } from "./json-calls.ts";

interface CutBody {
  /** The body as the model wrote it, including the white space before it. */
  readonly text: string;
  readonly callsIn: (body: string) => readonly CallEvent[];
  /** Texts, besides brackets, that can complete a body of this format; tried in order. */
  readonly closings?: readonly string[] | undefined;
}

/** Empty if the body has no complete tool name yet, or cannot be completed. */
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

/** Maximum number of open brackets that are tried as the start of the arguments. */
const DEPTH_MAX = 8;

/** The arguments exactly as the model wrote them; undefined if the format does not write them as JSON. */
function writtenAs(json: string, body: string, open: readonly number[]): string | undefined {
  const isBegun = (place: number): boolean => JSON.stringify(parseJson(closePrefix(body.slice(place)).text)) === json;
  const place = open.slice(0, DEPTH_MAX).find(isBegun);
  return place === undefined ? undefined : body.slice(place);
}

/**
 * Completes the last bracketed value of a body.
 * @returns `kept`: the part of the body before it and within; `more`: see `Closed`, empty if absent; `open`: positions
 * of open brackets
 */
function closeLast(body: string) {
  for (let start = nextBracket(body, 0); start >= 0;) {
    const before = body.slice(0, start);
    const { text, length, rest, more, open } = closePrefix(body.slice(start));
    if (length === undefined) {
      const kept = body.slice(0, body.length - rest.length);
      const positions = open.map((place) => start + place);
      return { text: before + text, kept, more: more ? before + more : "", open: positions };
    }
    start = nextBracket(body, start + length);
  }
  return { text: body, kept: body, more: parseJson(body) === undefined ? "" : body, open: [] };
}

function nextBracket(text: string, from: number): number {
  const found = /[[{(]/.exec(text.slice(from));
  return found ? from + found.index : -1;
}
