/**
 * WebM and Matroska files, as browsers record them: the Opus packets of the first sound track. (RFC 8794, EBML; RFC
 * 9559, Matroska; RFC 7845, OpusHead)
 *
 * Elements are read one after another, and parents of wanted ones are entered whatever their size, so that recordings
 * without sizes and files cut off anywhere need no rules of their own. Nothing is copied.
 */

/** A packet, and the header of its track. */
interface OpusPacket {
  /** OpusHead. */
  readonly head: Uint8Array;
  readonly packet: Uint8Array;
}

/** A track of the file, as far as it has been read. */
interface Track {
  number: number;
  kind: number;
  codec: string;
  /** OpusHead, if the codec is Opus. */
  head: Uint8Array;
  /** True for a compressed or encrypted track. */
  isEncoded: boolean;
}

const ID = {
  segment: 0x18538067,
  cluster: 0x1f43b675,
  blockGroup: 0xa0,
  block: 0xa1,
  simpleBlock: 0xa3,
  tracks: 0x1654ae6b,
  trackEntry: 0xae,
  trackNumber: 0xd7,
  trackType: 0x83,
  codec: 0x86,
  codecPrivate: 0x63a2,
  contentEncodings: 0x6d80,
} as const;
const ENTERED: ReadonlySet<number> = new Set([ID.segment, ID.cluster, ID.blockGroup, ID.tracks, ID.trackEntry]);
const SOUND = 2;

/** Skips damage up to the next cluster. Throws if there is no sound track, or the first is not Opus. */
export function* opusPackets(bytes: Uint8Array): Iterable<OpusPacket> {
  let [entry, sound]: (Track | undefined)[] = [];
  for (const { id, data } of elementsOf(bytes)) {
    if (id === ID.trackEntry || id === ID.cluster) {
      if (entry?.kind === SOUND) sound ??= entry; // all of its fields are read
      entry = undefined;
    }
    if (id === ID.trackEntry) entry = { number: 0, kind: 0, codec: "", head: new Uint8Array(0), isEncoded: false };
    else if (id === ID.cluster) checkTrack(sound);
    else if (id === ID.block || id === ID.simpleBlock) {
      if (sound) for (const packet of packetsOf(data, sound.number)) yield { head: sound.head, packet };
    } else if (entry) readField(entry, id, data);
  }
}

function checkTrack(track: Track | undefined): void {
  if (!track) throw new Error("expected a sound track, got none");
  if (track.codec !== "A_OPUS") throw new Error(`expected Opus, got the codec '${track.codec}'`);
  if (track.isEncoded) throw new Error("expected a plain sound track, got a compressed or encrypted one");
}

function readField(track: Track, id: number, data: Uint8Array): void {
  if (id === ID.trackNumber) track.number = unsigned(data);
  if (id === ID.trackType) track.kind = unsigned(data);
  if (id === ID.codec) track.codec = String.fromCharCode(...data.subarray(0, 40)).replace(/[^ -~].*$/s, "");
  if (id === ID.codecPrivate) track.head = data;
  if (id === ID.contentEncodings) track.isEncoded = true;
}

const unsigned = (data: Uint8Array): number => data.subarray(0, 8).reduce((value, byte) => value * 256 + byte, 0);

/** All elements in the file's order; an entered one is without its content, which follows. */
function* elementsOf(bytes: Uint8Array): Iterable<{ readonly id: number; readonly data: Uint8Array }> {
  for (let at = 0; at < bytes.length;) {
    const name = readNumber(bytes, at);
    const size = readNumber(bytes, at + name.length);
    const id = name.value + 2 ** (7 * name.length); // identifiers include the bit that marks their length
    const start = at + name.length + size.length;
    const end = ENTERED.has(id) ? start : start + size.value;
    const isWhole = name.length > 0 && size.length > 0 && end <= bytes.length;
    if (isWhole) yield { id, data: bytes.subarray(start, end) };
    at = isWhole ? end : nextCluster(bytes, at + 1);
  }
}

function nextCluster(bytes: Uint8Array, from: number): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = from;
  while (at + 4 <= bytes.length && view.getUint32(at) !== ID.cluster) at++;
  return at + 4 <= bytes.length ? at : bytes.length;
}

/** A number of 1 to 8 bytes. All ones are an unknown size, here infinite. A length of 0: damaged or cut off. */
function readNumber(bytes: Uint8Array, at: number): { readonly value: number; readonly length: number } {
  const first = bytes[at] ?? 0;
  const length = Math.clz32(first) - 23; // zeros before the first set bit stand for further bytes
  if (length > 8 || at + length > bytes.length) return { value: 0, length: 0 };
  let value = first & (0xff >> length);
  for (let i = 1; i < length; i++) value = value * 256 + bytes[at + i]!; // inside, checked above
  return { value: value === 2 ** (7 * length) - 1 ? Infinity : value, length };
}

/** The packets of a block: none if it is damaged or another track's. */
function packetsOf(block: Uint8Array, track: number): Uint8Array[] {
  const { value, length } = readNumber(block, 0);
  const at = length + 3; // after 16 bits of time and 8 of flags
  if (length === 0 || value !== track || at > block.length) return [];
  const lacing = (block[at - 1]! >> 1) & 3;
  return lacing === 0 ? [block.subarray(at)] : unlaced(block.subarray(at), lacing);
}

/** Several packets in one block: their count, the sizes of all but the last, and the packets. */
function unlaced(data: Uint8Array, lacing: number): Uint8Array[] {
  const count = (data[0] ?? 0) + 1;
  const { sizes, at } = LACINGS[lacing]!(data, count - 1);
  const last = data.length - at - sizes.reduce((sum, size) => sum + size, 0);
  const all = [...sizes, last];
  if (!all.every((size) => Number.isInteger(size) && size >= 0)) return [];
  let start = at;
  return all.map((size) => data.subarray(start, (start += size)));
}

/** Reads the sizes of the first packets, which begin at `at`. */
type ReadSizes = (data: Uint8Array, count: number) => { sizes: number[]; at: number };

const LACINGS: Readonly<Record<number, ReadSizes>> = {
  /** Xiph's: bytes that are added up, to the first below 255. */
  1: (data, count) => {
    let at = 1;
    const readSize = (): number => {
      let size = 0;
      for (;;) {
        const byte = data[at++] ?? NaN;
        size += byte;
        if (byte !== 255) return size;
      }
    };
    return { sizes: Array.from({ length: count }, readSize), at };
  },
  /** All packets have the same size. */
  2: (data, count) => ({ sizes: Array<number>(count).fill((data.length - 1) / (count + 1)), at: 1 }),
  /** EBML's: a number, then differences around the middle of their range. */
  3: (data, count) => {
    let [size, at] = [0, 1];
    const readSize = (_: unknown, i: number): number => {
      const { value, length } = readNumber(data, at);
      at += length;
      size += length === 0 ? NaN : value - (i === 0 ? 0 : 2 ** (7 * length - 1) - 1);
      return size;
    };
    return { sizes: Array.from({ length: count }, readSize), at };
  },
};
