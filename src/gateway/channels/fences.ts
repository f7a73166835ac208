/**
 * Where a text's code fences are, so that a cut inside one can close it and open it again.
 * Rules: CommonMark 0.31, 4.5 (without fences inside lists or quotes).
 */

export interface Fence {
  /** Of the line that opens it. */
  readonly start: number;
  /** Of the first line inside; where the text ends with the opening line, its end. */
  readonly bodyStart: number;
  /** Of the line that closes it; the text's end where none does. */
  readonly bodyEnd: number;
  /** Behind the line that closes it. */
  readonly end: number;
  /** The line that opens it again, without its end. */
  readonly opener: string;
  readonly closer: string;
}

const OPENER = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/;

export function findFences(text: string): Fence[] {
  const fences: Fence[] = [];
  let open: { start: number; bodyStart: number; opener: string; closer: string } | undefined;
  for (let start = 0; start < text.length;) {
    const newline = text.indexOf("\n", start);
    const next = newline < 0 ? text.length : newline + 1;
    const line = text.slice(start, next).replace(/\r?\n$/, "");
    if (!open) {
      const closer = OPENER.exec(line)?.[1];
      if (closer !== undefined) open = { start, bodyStart: next, opener: line, closer };
    } else if (closes(line, open.closer)) {
      fences.push({ ...open, bodyEnd: start, end: next });
      open = undefined;
    }
    start = next;
  }
  if (open) fences.push({ ...open, bodyEnd: text.length, end: text.length });
  return fences;
}

/** A line of the same characters, at least as many, and nothing else. */
function closes(line: string, closer: string): boolean {
  const run = /^ {0,3}(`{3,}|~{3,})[ \t]*$/.exec(line)?.[1];
  return run !== undefined && run.startsWith(closer);
}
