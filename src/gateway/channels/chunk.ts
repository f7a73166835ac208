/**
 * Cuts a text into messages of a platform's size: between paragraphs if no message becomes half empty, else between
 * lines, else between words; a word longer than a message is cut between graphemes. A cut code fence is closed and
 * opened again. Only blanks at the cuts are dropped, and no message is blank.
 */
import type { ChunkUnit } from "./channel.ts";
import { findFences, type Fence } from "./fences.ts";

export interface ChunkOptions {
  /** Maximum length of a message in `unit`; at least 50. */
  readonly limit: number;
  readonly unit: ChunkUnit;
}

/** Messages in order, none of them blank; [] for a blank text. */
export function chunkText(original: string, { limit, unit }: ChunkOptions): string[] {
  const text = original.toWellFormed();
  if (fits(text, limit, unit)) return text.trim() === "" ? [] : [text];
  // ignores fences whose repair would take half of a message
  const fences = findFences(text).filter((fence) => repairSize(fence, unit) * 2 <= limit);
  const chunks: string[] = [];
  for (let at = skipBlanks(text, 0); at < text.length;) {
    const { chunk, next } = nextChunk({ text, fences, unit, limit }, at);
    chunks.push(chunk);
    at = next;
  }
  return chunks;
}

interface Cutting extends ChunkOptions {
  readonly text: string;
  readonly fences: readonly Fence[];
}

/** @param at outside of all fences, or inside a fence's body before its end */
function nextChunk({ text, fences, unit, limit }: Cutting, at: number): { chunk: string; next: number } {
  const opened = fences.find((fence) => at > fence.bodyStart && at < fence.bodyEnd);
  const prefix = opened ? `${opened.opener}\n` : "";
  const room = limit - sizeOf(prefix, unit);
  const rest = text.slice(at).trimEnd();
  const isUnclosed = opened !== undefined && opened.bodyEnd === text.length;
  const last = isUnclosed ? `${rest}\n${opened.closer}` : rest;
  if (fits(last, room, unit)) return { chunk: prefix + last, next: text.length };

  // keep the opening line of a fence with its body
  const from = fences.find((fence) => fence.start === at)?.bodyStart ?? at;
  let cut = chooseCut(text, from, endWithin(text, at, { limit: room, unit }));
  for (;;) {
    const fence = fences.find(({ start, end }) => cut > start && cut < end);
    if (!fence) return { chunk: prefix + text.slice(at, cut).trimEnd(), next: skipBlanks(text, cut) };
    if (cut <= fence.bodyStart) {
      cut = fence.start;
      continue;
    }
    const suffix = `\n${fence.closer}`;
    const inner = Math.min(cut, fence.bodyEnd);
    const body = text.slice(at, inner).replace(/\r?\n$/, "");
    if (sizeOf(body + suffix, unit) <= room) {
      return { chunk: prefix + body + suffix, next: skipInside(text, inner, fence) };
    }
    const shorter = endWithin(text, at, { limit: room - sizeOf(suffix, unit), unit });
    cut = chooseCut(text, from, shorter);
  }
}

/** The best position for a cut after `from` and up to `end`; there is always one. */
function chooseCut(text: string, from: number, end: number): number {
  const half = from + (end - from) / 2;
  const paragraph = lastCut(text, { from: half, end }, (at) => isBlankLineBefore(text, at));
  const line = paragraph ?? lastCut(text, { from: half, end }, (at) => text[at - 1] === "\n");
  const word = line ?? lastCut(text, { from: from + (end - from) / 4, end }, (at) => isWordStart(text, at));
  return word ?? characterCut(text, from, end);
}

function lastCut(
  text: string,
  { from, end }: { from: number; end: number },
  isGood: (at: number) => boolean,
): number | undefined {
  // a newline right after the limit is dropped anyway
  for (let at = text[end] === "\n" ? end + 1 : end; at > from; at--) if (isGood(at)) return Math.min(at, end);
  return undefined;
}

const isBlankLineBefore = (text: string, at: number): boolean =>
  text[at - 1] === "\n" && (text[at - 2] === "\n" || text.slice(at - 3, at - 1) === "\n\r");

const BLANK = /[ \t\r\n\u3000]/;

/**
 * Forbids a cut before a combining mark, which would lose the blank that carries it, and before text that would become
 * a fence.
 */
function isWordStart(text: string, at: number): boolean {
  const isAfterBlank = BLANK.test(text[at - 1] ?? "") || BLANK.test(text[at] ?? "");
  return isAfterBlank && !/^\s*(\p{M}|\u200d|```|~~~)/u.test(text.slice(at, at + 16));
}

function characterCut(text: string, from: number, end: number): number {
  const segments = new Intl.Segmenter(undefined, { granularity: "grapheme" }).segment(text.slice(from, end + 2));
  const start = from + (segments.containing(end - from)?.index ?? 0);
  return start > from ? start : end; // a grapheme longer than a message is cut between code points
}

/** The largest end of a piece from `at` that is within the limit, never inside a code point. */
function endWithin(text: string, at: number, { limit, unit }: ChunkOptions): number {
  let end = at;
  let size = 0;
  while (end < text.length) {
    const units = (text.codePointAt(end) ?? 0) > 0xffff ? 2 : 1;
    size += unit === "codePoint" ? 1 : units;
    if (size > limit) break;
    end += units;
  }
  return end;
}

/** Counts only texts that may fit, because a long rest is checked after each of many messages. */
const fits = (text: string, limit: number, unit: ChunkUnit): boolean =>
  text.length <= 2 * limit && sizeOf(text, unit) <= limit;

function sizeOf(text: string, unit: ChunkUnit): number {
  if (unit === "utf16") return text.length;
  let size = 0;
  for (const _ of text) size++;
  return size;
}

const repairSize = ({ opener, closer }: Fence, unit: ChunkUnit): number => sizeOf(opener + closer, unit) + 4;

/** Skips blank lines, and the blanks after a word; keeps a line's indentation. */
function skipBlanks(text: string, at: number): number {
  const isInLine = at > 0 && text[at - 1] !== "\n";
  const blanks = isInLine ? /[^\S\n]*(?:\n(?:[^\S\n]*\n)*)?/y : /(?:[^\S\n]*\n)*/y;
  blanks.lastIndex = at;
  const next = at + (blanks.exec(text)?.[0].length ?? 0);
  return isBlank(text, next) ? text.length : next;
}

/** Skips only the end of the cut line: inside code, blanks count. */
function skipInside(text: string, at: number, fence: Fence): number {
  if (text.slice(at, fence.bodyEnd).trim() === "") return skipBlanks(text, fence.end);
  return text[at] === "\n" && text[at - 1] !== "\n" ? at + 1 : at;
}

function isBlank(text: string, from: number): boolean {
  const word = /\S/g;
  word.lastIndex = from;
  return !word.test(text);
}
