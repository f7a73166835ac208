/** Where a model's bytes come from: a mapped file, a file of a page's own storage, bytes in memory. */

/** The bytes of a file, read at any place and at once. */
export interface ByteSource {
  readonly byteLength: number;
  /** A view is a copy: whoever wants many bytes takes them in pieces, and nobody keeps them. */
  readonly copies: boolean;
  /** A range inside the file, read-only and good until `close`. */
  view(offset: number, length: number): Uint8Array;
  close(): void;
}

/** Opens a file by its path. Throws `not_found`, or `bad_file` where it cannot be read. */
export type OpenSource = (path: string) => ByteSource;

/** Bytes in memory. */
export function memorySource(bytes: Uint8Array): ByteSource {
  return {
    byteLength: bytes.length,
    copies: false,
    view: (offset, length) => bytes.subarray(offset, offset + length),
    close() {},
  };
}
