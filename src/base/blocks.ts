/**
 * Whole blocks (huge pages): a file written in such blocks is mapped block by block instead of page by page on Linux
 * file systems that have such pages, and is read faster.
 */

/** A huge page of most processors. */
export const BLOCK_BYTES = 2 * 2 ** 20;

/** Joins chunks to blocks; the last one may be short. Each block is valid until the next is requested. */
export async function* inBlocks(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, void> {
  let block: Uint8Array | undefined;
  let used = 0;
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length;) {
      const piece = chunk.subarray(at, at + BLOCK_BYTES - used);
      block ??= new Uint8Array(BLOCK_BYTES);
      block.set(piece, used);
      at += piece.length;
      used += piece.length;
      if (used < BLOCK_BYTES) continue;
      yield block;
      used = 0;
    }
  }
  if (block && used > 0) yield block.subarray(0, used);
}
