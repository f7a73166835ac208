/** The boxes of ISO base media files: a size, a name of four characters, and content, which may be boxes. */

export interface Box {
  readonly type: string;
  /** Bytes of the parent's content before the header. */
  readonly at: number;
  /** The content. */
  readonly data: DataView;
}

export const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** A positive number of 1, 2, 4 or 8 bytes. Throws beyond the end. */
export function numberAt(view: DataView, at: number, bytes: 1 | 2 | 4 | 8 = 4): number {
  if (at + bytes > view.byteLength) throw new Error("a box is damaged or cut off");
  if (bytes === 1) return view.getUint8(at);
  if (bytes === 2) return view.getUint16(at);
  return bytes === 4 ? view.getUint32(at) : Number(view.getBigUint64(at));
}

/** A number with a sign. */
export function signedAt(view: DataView, at: number, bytes: 4 | 8 = 4): number {
  const value = numberAt(view, at, bytes);
  const range = 2 ** (8 * bytes);
  return value >= range / 2 ? value - range : value;
}

/** Four characters. */
export const nameAt = (view: DataView, at: number): string =>
  String.fromCharCode(...[0, 1, 2, 3].map((i) => numberAt(view, at + i, 1)));

/** All boxes of a file or of a box's content. The last may be cut off. */
export function* boxesOf(view: DataView): Iterable<Box> {
  for (let at = 0; at + 8 <= view.byteLength;) {
    const short = view.getUint32(at);
    const head = short === 1 ? 16 : 8;
    const size = short === 1 && at + 16 <= view.byteLength ? numberAt(view, at + 8, 8) : short;
    const end = Math.min(view.byteLength, size === 0 ? Infinity : at + size);
    if (end < at + head) return; // damaged
    yield { type: nameAt(view, at + 4), at, data: part(view, at + head, end) };
    at = end;
  }
}

/** The content of the first box with each of these names, within the one before. */
export function findBox(view: DataView, ...path: readonly string[]): DataView | undefined {
  let found: DataView | undefined = view;
  for (const name of path) {
    const parent: DataView | undefined = found;
    found = undefined;
    if (parent)
      for (const { type, data } of boxesOf(parent)) {
        if (type !== name) continue;
        found = data;
        break;
      }
  }
  return found;
}

export const part = (view: DataView, from: number, to: number): DataView =>
  new DataView(view.buffer, view.byteOffset + from, to - from);
