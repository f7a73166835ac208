/**
 * Finds a text's code fences, so that a cut inside one can close it and open it again. Rules: CommonMark 0.31, 4.5
 * (without fences inside lists or quotes).
 */

export interface Fence {
  /** Start of the opening line. */
  readonly start: number;
  /** Start of the first line inside; the end of the text if it ends with the opening line. */
  readonly bodyStart: number;
  /** Start of the closing line; the end of the text if the fence is open. */
  readonly bodyEnd: number;
  /** End of the closing line. */
  readonly end: number;
  /** The line that opens the fence again, without its newline. */
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

/** A closing line: at least as many of the same characters, and nothing else. */
function closes(line: string, closer: string): boolean {
  const run = /^ {0,3}(`{3,}|~{3,})[ \t]*$/.exec(line)?.[1];
  return run !== undefined && run.startsWith(closer);
}
