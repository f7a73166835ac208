/** A tree of blocks of bytes that outlives the process. Any block may be missing or damaged at any time. */

export interface SnapshotInfo {
  readonly name: string;
  /** Name of the previous block; "" for a first one. */
  readonly parent: string;
  readonly tokens: readonly number[];
  /** The adapters that made a first block, and so the blocks after it. Default: none. */
  readonly adapters?: string;
  /** The checkpoints that follow the block's own bytes, in order: the number of tokens, and the number of bytes. */
  readonly checkpoints: readonly { readonly length: number; readonly bytes: number }[];
}

export interface SnapshotStore {
  /** The stored blocks. */
  list(): Promise<readonly SnapshotInfo[]>;
  /** The bytes of a block, valid until the next read; undefined if it is missing or damaged. */
  read(name: string): Uint8Array | undefined;
  /** Stores a block later; its bytes are `parts`, which must not change after the call. */
  write(info: SnapshotInfo, parts: readonly Uint8Array[]): void;
  remove(name: string): void;
  /** Marks blocks as used: others are evicted first. */
  touch(names: readonly string[]): void;
  /** Resolves when all blocks are stored, or after a second. */
  flush(): Promise<void>;
}
