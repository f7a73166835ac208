/** A text in pieces, and a parser's events for them. */
import type { ParsedEvent, TextParser } from "../../../src/runtime/parse/format.ts";

/** Cuts a text into pieces of these lengths. */
export function cut(text: string, lengths: Iterator<number>): string[] {
  const pieces: string[] = [];
  for (let at = 0; at < text.length;) {
    const length = lengths.next().value as number; // the generator never ends
    pieces.push(text.slice(at, at + length));
    at += length;
  }
  return pieces;
}

/**
 * Events with neighbours of one kind joined.
 * @param isCut true if the text was truncated
 */
export function parseWith(parser: TextParser, pieces: readonly string[], isCut = false): ParsedEvent[] {
  const joined: ParsedEvent[] = [];
  for (const event of [...pieces.flatMap((piece) => parser.push(piece)), ...parser.end(isCut)]) {
    const last = joined.at(-1);
    if (event.kind !== "toolCall" && event.kind !== "cutCall" && last?.kind === event.kind) {
      joined[joined.length - 1] = { kind: event.kind, text: last.text + event.text };
    } else joined.push(event);
  }
  return joined;
}
