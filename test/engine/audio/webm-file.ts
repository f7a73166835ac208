/** Writes WebM files, including invalid ones. */

export const ID = {
  ebml: [0x1a, 0x45, 0xdf, 0xa3],
  segment: [0x18, 0x53, 0x80, 0x67],
  cluster: [0x1f, 0x43, 0xb6, 0x75],
  time: [0xe7],
  blockGroup: [0xa0],
  block: [0xa1],
  simpleBlock: [0xa3],
  discardPadding: [0x75, 0xa2],
  tracks: [0x16, 0x54, 0xae, 0x6b],
  trackEntry: [0xae],
  trackNumber: [0xd7],
  trackType: [0x83],
  codec: [0x86],
  codecPrivate: [0x63, 0xa2],
  contentEncodings: [0x6d, 0x80],
  void: [0xec],
  crc: [0xbf],
} as const;

/** A number in as many bytes as asked for, by default the fewest. */
export function number(value: number, bytes?: number): number[] {
  let length = bytes ?? 1;
  while (bytes === undefined && value >= 2 ** (7 * length) - 1) length++;
  const digits = Array.from({ length }, (_, i) => Math.floor(value / 256 ** (length - 1 - i)) % 256);
  digits[0]! |= 0x80 >> (length - 1);
  return digits;
}

const join = (parts: readonly (Uint8Array | readonly number[])[]): Uint8Array =>
  new Uint8Array(Buffer.concat(parts.map((part) => Uint8Array.from(part))));

/** @param size bytes of the number that holds its size, or `unknown` */
export function element(id: readonly number[], content: Uint8Array, size?: number | "unknown"): Uint8Array {
  return join([
    id,
    size === "unknown" ? [0x01, ...Array<number>(7).fill(0xff)] : number(content.length, size),
    content,
  ]);
}

export const elements = (...parts: readonly Uint8Array[]): Uint8Array => join(parts);

export const bytesOf = (...values: readonly number[]): Uint8Array => Uint8Array.from(values);

export const OPUS_HEAD = join([Buffer.from("OpusHead"), [1, 1, 0, 0, 0x80, 0xbb, 0, 0, 0, 0, 0]]);

interface TrackOptions {
  readonly number?: number;
  /** 1: pictures, 2: sound. */
  readonly kind?: number;
  readonly codec?: string;
  readonly head?: Uint8Array;
  readonly more?: Uint8Array;
}

export function track(options: TrackOptions = {}): Uint8Array {
  const { number: index = 1, kind = 2, codec = "A_OPUS", head = OPUS_HEAD, more = new Uint8Array(0) } = options;
  const fields = [
    element(ID.trackNumber, bytesOf(index)),
    element(ID.trackType, bytesOf(kind)),
    element(ID.codec, Buffer.from(codec)),
    element(ID.codecPrivate, head),
    more,
  ];
  return element(ID.trackEntry, join(fields));
}

export type Lacing = "none" | "Xiph" | "fixed" | "EBML";
const LACINGS: readonly Lacing[] = ["none", "Xiph", "fixed", "EBML"];

/** The content of a block with these packets. */
export function block(packets: readonly Uint8Array[], lacing: Lacing = "none", index = 1): Uint8Array {
  const sizes = packets.slice(0, -1).map((packet) => packet.length);
  const written: Record<Lacing, () => number[]> = {
    none: () => [],
    fixed: () => [],
    Xiph: () => sizes.flatMap((size) => [...Array<number>(Math.floor(size / 255)).fill(255), size % 255]),
    EBML: () => sizes.flatMap((size, i) => (i === 0 ? number(size) : number(size - sizes[i - 1]! + 2 ** 13 - 1, 2))),
  };
  const count = lacing === "none" ? [] : [packets.length - 1];
  const flags = 0x80 | (LACINGS.indexOf(lacing) << 1);
  return join([number(index), [0, 0, flags], count, written[lacing](), ...packets]);
}

/** A whole file: tracks, and the content of its clusters. */
export function webm(
  { tracks = [track()], size }: { tracks?: readonly Uint8Array[]; size?: number | "unknown" | undefined },
  ...clusters: readonly Uint8Array[]
): Uint8Array {
  const inside = [
    element(ID.tracks, join(tracks)),
    ...clusters.map((cluster) => element(ID.cluster, join([element(ID.time, bytesOf(0)), cluster]), size)),
  ];
  return join([
    element(ID.ebml, bytesOf(0x42, 0x82, 0x84, ...Buffer.from("webm"))),
    element(ID.segment, join(inside), size),
  ]);
}
