/** The packets of a fragmented file, which a recorder writes while it records. (ISO/IEC 14496-12, 8.8) */
import { boxesOf, findBox, numberAt, signedAt, viewOf, type Box } from "./boxes.ts";

/** Fields of `tfhd` and `trun` that are there. */
const TRACK = { base: 1, description: 2, duration: 8, size: 0x10 } as const;
const RUN = { offset: 1, firstFlags: 4, duration: 0x100, size: 0x200, flags: 0x400, shift: 0x800 } as const;

/** The packets of a track in all fragments. */
export function* fragmentPackets(bytes: Uint8Array, movie: DataView, track: number): Iterable<Uint8Array> {
  const size = defaultSize(movie, track);
  for (const fragment of boxesOf(viewOf(bytes)))
    if (fragment.type === "moof")
      for (const { type, data } of boxesOf(fragment.data))
        if (type === "traf") yield* trackPackets(bytes, fragment, { traf: data, track, size });
}

function defaultSize(movie: DataView, track: number): number {
  const extensions = findBox(movie, "mvex");
  for (const { type, data } of extensions ? boxesOf(extensions) : [])
    if (type === "trex" && numberAt(data, 4) === track) return numberAt(data, 16);
  return 0;
}

function* trackPackets(
  bytes: Uint8Array,
  fragment: Box,
  { traf, track, size: sizeByMovie }: { traf: DataView; track: number; size: number },
): Iterable<Uint8Array> {
  const head = findBox(traf, "tfhd");
  if (!head || numberAt(head, 4) !== track) return;
  const flags = numberAt(head, 0);
  const hasBase = (flags & TRACK.base) !== 0;
  let sizeAt = 8 + (hasBase ? 8 : 0);
  for (const field of [TRACK.description, TRACK.duration]) if (flags & field) sizeAt += 4;
  const size = flags & TRACK.size ? numberAt(head, sizeAt) : sizeByMovie;
  const base = hasBase ? numberAt(head, 8, 8) : fragment.at;
  let at = base;
  for (const { type, data } of boxesOf(traf)) {
    if (type !== "trun") continue;
    const run = readRun(data);
    if (run.offset !== undefined) at = base + run.offset;
    for (let i = 0; i < run.count && at >= 0 && at < bytes.length; i++) {
      const length = run.sizeAt === undefined ? size : numberAt(data, run.entriesAt + i * run.entryBytes + run.sizeAt);
      if (length === 0 && run.sizeAt === undefined) return;
      if (at + length <= bytes.length) yield bytes.subarray(at, at + length);
      at += length;
    }
  }
}

interface Run {
  readonly count: number;
  /** Place of the first packet; undefined: after the run before. */
  readonly offset: number | undefined;
  readonly entriesAt: number;
  readonly entryBytes: number;
  /** Place of a packet's size in its entry; undefined: all packets have the track's. */
  readonly sizeAt: number | undefined;
}

function readRun(trun: DataView): Run {
  const flags = numberAt(trun, 0);
  const has = (field: number): number => (flags & field ? 4 : 0);
  return {
    count: numberAt(trun, 4),
    offset: flags & RUN.offset ? signedAt(trun, 8) : undefined,
    entriesAt: 8 + has(RUN.offset) + has(RUN.firstFlags),
    entryBytes: has(RUN.duration) + has(RUN.size) + has(RUN.flags) + has(RUN.shift),
    sizeAt: flags & RUN.size ? has(RUN.duration) : undefined,
  };
}
