/** The content of slots: saved, copied in blocks, and grown. */

/** A saved copy of a slot's states besides keys and values. Belongs to the session that made it. */
export interface Checkpoint {
  /** Tokens of the slot at that time. */
  readonly length: number;
  readonly bytes: number;
}

/** For programs with recurrent states, whose slots continue only from their last row or a checkpoint. */
export interface Checkpoints {
  /**
   * Saves the states, besides keys and values, of a slot that holds `length` tokens.
   * @param into an obsolete checkpoint whose memory may be reused
   */
  save(slot: number, length: number, into?: Checkpoint): Checkpoint | Promise<Checkpoint>;
  /**
   * Resets a slot to a checkpoint of this or another slot. The keys and values of the earlier tokens must be in place:
   * unchanged, or copied.
   */
  restore(slot: number, checkpoint: Checkpoint): void;
  /**
   * The length that a slot has when it should have `length`; resets the slot if more tokens were evaluated
   * speculatively. Default: `length`.
   */
  standing?(slot: number, length: number): number;
}

/** Serializes checkpoints. */
export interface PackedCheckpoints {
  pack(checkpoint: Checkpoint): Uint8Array | Promise<Uint8Array>;
  /** Undefined if the number of bytes is wrong. */
  unpack(length: number, bytes: Uint8Array): Checkpoint | undefined;
}

/** Keys and values of a range of positions as bytes, which can be written to any slot at the same positions. */
export interface KvBlocks {
  /** Blocks begin at multiples of this and have at most this many positions. */
  readonly length: number;
  /** Identifies the format of the bytes, apart from the weights: backend, kernels, layout of keys and values. */
  readonly layout: string;
  /** Set if slots continue only from checkpoints. */
  readonly checkpoints: PackedCheckpoints | undefined;
  /** Bytes of a block with `count` positions. */
  bytesOf(count: number): number;
  /** Copies `count` positions, beginning at `first`. */
  read(slot: number, first: number, count: number): Uint8Array | Promise<Uint8Array>;
  /**
   * Writes the bytes back, to that slot or another; later positions may be overwritten too. Throws `busy` without room.
   */
  write(
    slot: number,
    block: { readonly first: number; readonly count: number; readonly bytes: Uint8Array },
  ): void | Promise<void>;
}

/** For slots whose memory grows with their content. */
export interface Growth {
  readonly tokenBytes: number;
  /** Frees the memory of a slot, which loses its content. */
  release(slot: number): void;
}
