/** Where a model's bytes come from: a mapped file, a file of a page's own storage, bytes in memory. */

/** The bytes of a file, read at any place and at once. */
export interface ByteSource {
  readonly byteLength: number;
  /** Views are copies: read large ranges in pieces and do not keep them. */
  readonly copies: boolean;
  /** A range inside the file, read-only and good until `close`. */
  view(offset: number, length: number): Uint8Array;
  /** What has happened to a file that was to stay as it is; undefined: nothing. */
  changed?(): string | undefined;
  /** Reads what is not in memory yet, from the beginning to the end, where all of it fits there. */
  readAhead?(options: { onProgress: (fraction: number) => void; signal: AbortSignal | undefined }): Promise<void>;
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
