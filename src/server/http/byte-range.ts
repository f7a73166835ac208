/** The byte range that a request asks for (RFC 9110, section 14). */

/** Bytes from `start` up to `end`, exclusive. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Undefined: the whole file, also for several ranges, other units and invalid headers.
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
