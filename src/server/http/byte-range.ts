/** The one range of a file that a request asks for (RFC 9110, section 14). */

/** Bytes `start` up to `end`, which is outside. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Undefined: all of it, which is also the answer to several ranges, to other units and to what cannot be read.
 * @param size of the file, in bytes
 */
export function byteRangeOf(header: string | null, size: number): ByteRange | "unsatisfiable" | undefined {
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/i.exec(header?.replaceAll(" ", "") ?? "") ?? [];
  if (first === "" && last === "") return undefined;
  const [from, to] = [Number(first), Number(last)];
  if (first === "") return to > 0 && size > 0 ? { start: Math.max(0, size - to), end: size } : "unsatisfiable";
  if (last !== "" && to < from) return undefined;
  if (from >= size) return "unsatisfiable";
  return { start: from, end: last === "" ? size : Math.min(to + 1, size) };
}
