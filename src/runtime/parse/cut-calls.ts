/** Calls in a body that was cut: all are whole but the last, which has part of its arguments. */
import { closePrefix } from "../../base/json-prefix.ts";
import type { CallEvent, CutCallEvent } from "./format.ts";

interface CutBody {
  /** The body as the model wrote it, with the white space before it. */
  readonly text: string;
  readonly callsIn: (body: string) => readonly CallEvent[];
  /** What may close a body of this format, beside brackets; tried in order. */
  readonly closings?: readonly string[] | undefined;
}

/** None where the body does not tell the name of a tool yet, or cannot be closed. */
export function cutCallsIn(body: string, { text, callsIn, closings = [] }: CutBody): (CallEvent | CutCallEvent)[] {
  let calls: readonly CallEvent[] = [];
  for (const begun of [body, closeLast(body)]) {
    for (const closing of ["", ...closings]) if (calls.length === 0) calls = callsIn(begun + closing);
  }
  const last = calls.at(-1);
  return last ? [...calls.slice(0, -1), cutCall(last, text)] : [];
}

const cutCall = ({ name, arguments: args }: CallEvent, text: string): CutCallEvent => ({
  kind: "cutCall",
  name,
  arguments: JSON.stringify(args).replace(/^\{\}$|"?\}$/, ""),
  text,
});

/** Closes the brackets that are open at the end. */
function closeLast(body: string): string {
  for (let start = nextBracket(body, 0); start >= 0;) {
    const { text, length } = closePrefix(body.slice(start));
    if (length === undefined) return body.slice(0, start) + text;
    start = nextBracket(body, start + length);
  }
  return body;
}

function nextBracket(text: string, from: number): number {
  const found = /[[{(]/.exec(text.slice(from));
  return found ? from + found.index : -1;
}
