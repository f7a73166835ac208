/** Sources of a model's bytes: a mapped file, a file in a page's storage, bytes in memory. */

/** The bytes of a file, with synchronous random access. */
export interface ByteSource {
  readonly byteLength: number;
  /** Views are copies: read large ranges in pieces and do not keep them. */
  readonly copies: boolean;
  /** A range inside the file, read-only and valid until `close`. */
  view(offset: number, length: number): Uint8Array;
  /** Describes a change of the file since it was opened; undefined: unchanged. */
  changed?(): string | undefined;
  /** Reads missing bytes into memory, from the beginning to the end, if the whole file fits. */
  readAhead?(options: { onProgress: (fraction: number) => void; signal: AbortSignal | undefined }): Promise<void>;
  close(): void;
}

/** Opens a file by its path. Throws `not_found`, or `bad_file` if it cannot be read. */
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
