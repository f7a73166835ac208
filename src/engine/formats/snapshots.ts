/** Blocks of bytes that outlive a process, in a tree. Any of them may be gone, or turn out damaged, at any time. */

export interface SnapshotInfo {
  readonly name: string;
  /** Of the block before it; "" for a first one. */
  readonly parent: string;
  readonly tokens: readonly number[];
  /** What follows the block's own bytes, in order: what was kept after so many tokens, and its bytes. */
  readonly checkpoints: readonly { readonly length: number; readonly bytes: number }[];
}

export interface SnapshotStore {
  /** What is there. */
  list(): Promise<readonly SnapshotInfo[]>;
  /** The bytes of a block as they were, good until the next is read; undefined where it is gone or damaged. */
  read(name: string): Uint8Array | undefined;
  /** Keeps a block, in a while; `parts` make its bytes and do not change any more. */
  write(info: SnapshotInfo, parts: readonly Uint8Array[]): void;
  remove(name: string): void;
  /** These were used: others go before them. */
  touch(names: readonly string[]): void;
  /** Resolves when what was given is kept, or a second has passed. */
  flush(): Promise<void>;
}
