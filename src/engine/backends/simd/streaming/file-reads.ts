/** Reads of files into memory that run while the processor works. The host provides them. */

/** Offsets, sizes and addresses of reads are multiples of this: reads past the file cache demand it. */
export const READ_UNIT = 4096;

export interface FileRead {
  readonly fd: number;
  readonly offset: number;
  readonly bytes: number;
  readonly address: number;
  /** Bytes that the file must have in this range, which may end after the file does. */
  readonly least: number;
}

export interface FileReads {
  /** Begins a read. @param done called by a later `wait` or `begin`, with a message if the read failed */
  begin(read: FileRead, done: (error?: string) => void): void;
  /** Hands begun reads to the system. */
  flush(): void;
  /** Waits until at least one read has ended. There must be one. */
  wait(): void;
  /** Waits for all reads, and ends. */
  close(): void;
}

export const alignDown = (value: number): number => value - (value % READ_UNIT);
export const alignUp = (value: number): number => Math.ceil(value / READ_UNIT) * READ_UNIT;
