/**
 * The engine's form of a prompt: token ids, and between them media, whose rows are vectors in place of token
 * embeddings. In the layout each row has a key: its id, or a negative number that identifies the content of a media
 * row, so that different images never match when prefixes are compared.
 */
import type { Rows } from "../program/backend.ts";
import { AppError, assert } from "../../base/index.ts";

/** A non-text part of a prompt. */
export interface Media {
  /** Hash of its content and encoding: equal hashes mean equal vectors. */
  readonly hash: string;
  readonly rows: number;
  /** (rows, dim) */
  readonly vectors: Float32Array;
  /** Positions of its rows, relative to its beginning; omitted: consecutive. */
  readonly positions?: {
    /** (rows, `perRow`) */
    readonly of: Int32Array;
    /** Three (time, height, width), or one. */
    readonly perRow: 1 | 3;
    /** Number of positions it occupies: text after it continues from there. */
    readonly length: number;
  };
  /** Its rows attend to each other in both directions, as the parts of an image do. */
  readonly isTwoWay: boolean;
  /**
   * Rows (n, dim) that its row and all later rows read in cross attention. Then it has one row, `token`, no vectors.
   */
  readonly memory?: Float32Array;
  /** The id of its row, if it has a memory. */
  readonly token?: number;
}

export type PromptSegment =
  { readonly kind: "ids"; readonly ids: Int32Array } | { readonly kind: "media"; readonly media: Media };

/** Media in a prompt: rows `first` … `end − 1`. */
export interface PlacedMedia {
  readonly media: Media;
  readonly first: number;
  readonly end: number;
}

export interface Layout {
  /** The id of each row; −1 for a media row, also if it has a token. */
  readonly ids: Int32Array;
  /** Keys for comparing rows. */
  readonly keys: readonly number[];
  /** In the order of their rows. */
  readonly media: readonly PlacedMedia[];
}

/** Marks a row without an id. */
const NO_ID = -1;
/**
 * Lays out a prompt. Keys of media rows are equal for equal content, in every process, and differ for different content
 * except with a probability of 2^−48.
 */
export function layOut(prompt: readonly PromptSegment[]): Layout {
  const [only] = prompt;
  if (prompt.length === 1 && only?.kind === "ids") return layOutIds(only.ids);
  const ids: number[] = [];
  const keys: number[] = [];
  const media: PlacedMedia[] = [];
  for (const segment of prompt) {
    if (segment.kind === "ids") {
      for (const id of segment.ids) {
        checkId(id);
        ids.push(id);
        keys.push(id);
      }
      continue;
    }
    const { rows, vectors, hash } = segment.media;
    assert(rows > 0 && vectors.length % rows === 0, `media of ${rows} rows and ${vectors.length} values`);
    const base = 1 + shortHash(hash);
    media.push({ media: segment.media, first: keys.length, end: keys.length + rows });
    for (let row = 0; row < rows; row++) {
      ids.push(NO_ID);
      keys.push(-(base + row));
    }
  }
  const single = media.some((placed) => placed.media.memory);
  if (single && media.length > 1) throw new AppError("bad_request", `prompt: expected one image, got ${media.length}`);
  return { ids: Int32Array.from(ids), keys, media };
}

/** 48 bits of a hash: two FNV-1a hashes with different factors. */
function shortHash(hash: string): number {
  let [a, b] = [0x811c9dc5, 0x9747b28c];
  for (let i = 0; i < hash.length; i++) {
    const code = hash.charCodeAt(i);
    a = Math.imul(a ^ code, 0x01000193);
    b = Math.imul(b ^ code, 0x85ebca6b);
  }
  return (a >>> 0) * 2 ** 16 + (b >>> 16);
}

/** A prompt of text only. */
function layOutIds(ids: Int32Array): Layout {
  const keys: number[] = [];
  for (let i = 0; i < ids.length; i++) {
    checkId(ids[i]!);
    keys.push(ids[i]!);
  }
  return { ids: ids.slice(), keys, media: [] };
}

function checkId(id: number): void {
  if (id < 0) throw new AppError("bad_request", `prompt: expected ids of the vocabulary, got ${id}`);
}

/**
 * The longest length up to `length` at which a run may begin: not between rows that attend to each other in both
 * directions, and not one row before a memory, since backends may sum a run of one row in another order.
 */
export function wholeLength(media: readonly PlacedMedia[], length: number): number {
  const isShort = media.some(({ first, media: { memory } }) => memory && first === length + 1);
  return isShort ? Math.max(0, length - 1) : (twoWayAround(media, length)?.first ?? length);
}

/** The row of a memory that follows a length, at which a run from there must end; Infinity: no memory follows. */
export const nextMemory = (media: readonly PlacedMedia[], length: number): number =>
  media.find(({ first, media: { memory } }) => memory && first > length)?.first ?? Infinity;

/** The shortest length from `length` on at which a run may end, apart from memories. */
export const wholeEnd = (media: readonly PlacedMedia[], length: number): number =>
  twoWayAround(media, length)?.end ?? length;

const twoWayAround = (media: readonly PlacedMedia[], at: number): PlacedMedia | undefined =>
  media.find(({ first, end, media: { isTwoWay } }) => isTwoWay && first < at && at < end);

/** The rows `start` … `end − 1` of a sequence, for the backend. */
export function inputOf(
  { tokens, media }: { readonly tokens: readonly number[]; readonly media: readonly PlacedMedia[] },
  { start, end }: { start: number; end: number },
): Pick<Rows, "tokens" | "vectors" | "positions" | "spans" | "memory"> {
  const ids = Int32Array.from(tokens.slice(start, end), (key) => Math.max(key, NO_ID));
  const among = media.filter(({ first, end: last }) => first < end && start < last);
  for (const {
    first,
    media: { token },
  } of among)
    if (token !== undefined) ids[first - start] = token;
  const within = among.filter((placed) => !placed.media.memory);
  const spans = within
    .filter((placed) => placed.media.isTwoWay)
    .map(({ first, end: last }) => ({ first: first - start, end: last - start }));
  return {
    tokens: ids,
    ...(within.length > 0 ? { vectors: vectorsOf(within, { start, end }) } : {}),
    ...(media.some((placed) => placed.media.positions) ? { positions: positionsOf(media, { start, end }) } : {}),
    ...(spans.length > 0 ? { spans } : {}),
    ...memoryOf(media, { start, end }),
  };
}

/** The memory of rows, which all of them have or none. */
function memoryOf(media: readonly PlacedMedia[], { start, end }: { start: number; end: number }): Pick<Rows, "memory"> {
  const placed = media.findLast(({ first, media: { memory } }) => memory && first < end);
  if (!placed) return {};
  assert(placed.first <= start, `rows ${start} … ${end - 1} begin before the memory of row ${placed.first}`);
  const { hash: id, memory: rows } = placed.media;
  return rows ? { memory: { id, rows } } : {};
}

/** (rows of media, dim) */
function vectorsOf(within: readonly PlacedMedia[], { start, end }: { start: number; end: number }): Float32Array {
  const parts = within.map(({ media: { vectors, rows }, first, end: last }) => {
    const dim = vectors.length / rows;
    return vectors.subarray((Math.max(start, first) - first) * dim, (Math.min(end, last) - first) * dim);
  });
  const all = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** (rows, 1 or 3): text after media continues from the media's last position, whatever its number of rows. */
function positionsOf(media: readonly PlacedMedia[], { start, end }: { start: number; end: number }): Int32Array {
  const perRow = media.some((placed) => placed.media.positions?.perRow === 3) ? 3 : 1;
  const positions = new Int32Array((end - start) * perRow);
  let ahead = 0; // positions minus rows: negative if media occupy fewer positions
  let index = 0;
  for (let row = 0; row < end; row++) {
    while (index < media.length && media[index]!.end <= row) {
      const { positions: own, rows } = media[index++]!.media;
      ahead += own ? own.length - rows : 0;
    }
    if (row < start) continue;
    const placed = media[index];
    const inside = placed && placed.first <= row ? placed : undefined;
    const own = inside?.media.positions;
    for (let axis = 0; axis < perRow; axis++) {
      const at = (row - start) * perRow + axis;
      if (!inside || !own) positions[at] = row + ahead;
      else
        positions[at] =
          inside.first + ahead + own.of[(row - inside.first) * own.perRow + Math.min(axis, own.perRow - 1)]!;
    }
  }
  return positions;
}
