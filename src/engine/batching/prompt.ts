/**
 * A prompt as the engine takes it: ids of tokens, and media between them, which are rows of vectors in place of token
 * embeddings. Laid out, each row has a key: its id, or a negative number that stands for the content of a row of media,
 * so that two images never pass for each other where prefixes are compared.
 */
import type { Rows } from "../program/backend.ts";
import { AppError, assert } from "../../base/index.ts";

/** Something that is no text. */
export interface Media {
  /** Of its content and of how it was encoded: equal hashes stand for equal vectors. */
  readonly hash: string;
  readonly rows: number;
  /** (rows, dim) */
  readonly vectors: Float32Array;
  /** Where its rows are, counted from where it begins; left out: one after the other. */
  readonly positions?: {
    /** (rows, `perRow`) */
    readonly of: Int32Array;
    /** Time, height, width; or one. */
    readonly perRow: 1 | 3;
    /** How many positions it takes up: what follows is so far behind its beginning. */
    readonly length: number;
  };
  /** Its rows see each other both ways, as the parts of an image do. */
  readonly isTwoWay: boolean;
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
  /** Of each row its id; −1 for a row of media. */
  readonly ids: Int32Array;
  /** What rows are compared by. */
  readonly keys: readonly number[];
  /** In the order of their rows. */
  readonly media: readonly PlacedMedia[];
}

/** In place of an id. */
const NO_ID = -1;
/** Contents whose keys are known; one that was forgotten gets others, and shares no prefix with what it was. */
const HASHES_MAX = 4096;

/** Gives rows of media their keys: the same ones to the same content, and never those of another. */
export function makeLayouts(): (prompt: readonly PromptSegment[]) => Layout {
  const bases = new Map<string, number>(); // by hash, used last at the end
  let next = 1;
  const baseOf = ({ hash, rows }: Media): number => {
    const base = bases.get(hash) ?? next;
    if (base === next) next += rows;
    bases.delete(hash);
    bases.set(hash, base);
    if (bases.size > HASHES_MAX) bases.delete(bases.keys().next().value!); // not empty
    return base;
  };
  return (prompt) => {
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
      const { rows, vectors } = segment.media;
      assert(rows > 0 && vectors.length % rows === 0, `media of ${rows} rows and ${vectors.length} values`);
      const base = baseOf(segment.media);
      media.push({ media: segment.media, first: keys.length, end: keys.length + rows });
      for (let row = 0; row < rows; row++) {
        ids.push(NO_ID);
        keys.push(-(base + row));
      }
    }
    return { ids: Int32Array.from(ids), keys, media };
  };
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

/** The longest length up to `length` where a run may begin: not between rows that see each other both ways. */
export const wholeLength = (media: readonly PlacedMedia[], length: number): number =>
  twoWayAround(media, length)?.first ?? length;

/** The shortest length from `length` on where a run may end. */
export const wholeEnd = (media: readonly PlacedMedia[], length: number): number =>
  twoWayAround(media, length)?.end ?? length;

const twoWayAround = (media: readonly PlacedMedia[], at: number): PlacedMedia | undefined =>
  media.find(({ first, end, media: { isTwoWay } }) => isTwoWay && first < at && at < end);

/** The rows `start` … `end − 1` of a sequence, for the backend. */
export function inputOf(
  { tokens, media }: { readonly tokens: readonly number[]; readonly media: readonly PlacedMedia[] },
  { start, end }: { start: number; end: number },
): Pick<Rows, "tokens" | "vectors" | "positions" | "spans"> {
  const ids = Int32Array.from(tokens.slice(start, end), (key) => Math.max(key, NO_ID));
  const within = media.filter(({ first, end: last }) => first < end && start < last);
  const spans = within
    .filter((placed) => placed.media.isTwoWay)
    .map(({ first, end: last }) => ({ first: first - start, end: last - start }));
  return {
    tokens: ids,
    ...(within.length > 0 ? { vectors: vectorsOf(within, { start, end }) } : {}),
    ...(media.some((placed) => placed.media.positions) ? { positions: positionsOf(media, { start, end }) } : {}),
    ...(spans.length > 0 ? { spans } : {}),
  };
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

/** (rows, 1 or 3): what follows media begins where they end, however many rows they have. */
function positionsOf(media: readonly PlacedMedia[], { start, end }: { start: number; end: number }): Int32Array {
  const perRow = media.some((placed) => placed.media.positions?.perRow === 3) ? 3 : 1;
  const positions = new Int32Array((end - start) * perRow);
  let ahead = 0; // of positions before rows: negative where media take up fewer
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
