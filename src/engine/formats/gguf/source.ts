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
  /**
   * Opens the file once more, for reads past the file cache if the file system has them; the caller closes the
   * descriptor. Undefined if the path leads to another file by now; omitted: there is no file.
   */
  openDirect?(): number | undefined;
  /** Reads missing bytes into memory, from the beginning to the end, if the whole file fits. */
  readAhead?(options: { onProgress: (fraction: number) => void; signal: AbortSignal | undefined }): Promise<void>;
  /** Begins to read a range into memory. */
  prefetch?(offset: number, length: number): void;
  /**
   * Announces that a range is not needed soon: if the file is larger than the memory, other ranges replace it first.
   */
  release?(offset: number, length: number): void;
  /** Moves the bytes into larger pages, without any change that readers could see. Never throws. */
  moveToHugePages?(): Promise<unknown>;
  /** May be called again. */
  close(): void;
}

/** A range of a file. */
export interface FilePlace {
  readonly file: ByteSource;
  readonly offset: number;
  readonly byteLength: number;
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
