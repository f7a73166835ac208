/** Memory that kernels see by address. Another implementation may keep it elsewhere than in this process's own. */
/** What a lowering needs to know of memory. */
export interface Memory {
  /** Zeros, aligned to 64 bytes; `what` names them where there is no room. */
  allocate(bytes: number, what: string): Block;
  /** Where a view lies: as it is, not a copy. It must not go away as long as the memory is used. */
  place(view: Placed): number;
  /** Its kernels multiply 8-bit activations with interleaved rows too: where views are copied anyway. */
  readonly interleaves?: true;
  /** Gives the pages of a range back, which then holds zeros, but for a page at each end; left out: cannot be done. */
  discard?(block: Block, offset: number, bytes: number): void;
  /** Says that placed views may have new contents; left out where they are seen as they are. */
  refresh?(views: readonly Placed[]): void;
  /** Bytes allocated so far. */
  readonly bytes: number;
  /** Lets go of all of it. */
  release(): void;
}

export type Placed = Uint8Array | Int8Array | Float32Array;

export interface Block {
  readonly address: number;
  readonly view: Uint8Array;
}
