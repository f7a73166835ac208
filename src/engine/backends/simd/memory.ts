/** Memory that kernels access by address. An implementation may place it outside this process's own memory. */
/** Memory services for a lowering. */
export interface Memory {
  /** Zeros, aligned to 64 bytes; `what` names them in the error if there is not enough memory. */
  allocate(bytes: number, what: string): Block;
  /** The address of a view, without copying if possible. The view must stay valid as long as the memory is used. */
  place(view: Placed): number;
  /** Its kernels also multiply 8-bit activations with interleaved rows, because views are copied anyway. */
  readonly interleaves?: true;
  /**
   * Frees the pages of a range, which then reads as zeros except for partial pages at the ends; omitted: not supported.
   */
  discard?(block: Block, offset: number, bytes: number): void;
  /** Announces new contents of placed views; omitted if views are not copied. */
  refresh?(views: readonly Placed[]): void;
  /** Bytes allocated so far. */
  readonly bytes: number;
  /** Releases everything. */
  release(): void;
}

export type Placed = Uint8Array | Int8Array | Float32Array;

export interface Block {
  readonly address: number;
  readonly view: Uint8Array;
}

/**
 * A block of at least this many bytes, the same one while it is large enough. A new one is at least twice as large as
 * the last, because memory is only released as a whole.
 */
export function growingBlock(memory: Memory, what: string): (bytes: number) => Block {
  let block: Block | undefined;
  return (bytes) => {
    const size = block?.view.byteLength ?? 0;
    if (!block || size < bytes) block = memory.allocate(Math.max(bytes, 2 * size), what);
    return block;
  };
}
