import { expect, test } from "bun:test";
import { BLOCK_BYTES, inBlocks } from "../../src/base/blocks.ts";
import { noise } from "../library/registry/place.ts";

async function* pieces(bytes: Uint8Array, sizes: readonly number[]): AsyncGenerator<Uint8Array, void, void> {
  for (let at = 0, i = 0; at < bytes.length; at += sizes[i++ % sizes.length]!) {
    yield bytes.subarray(at, at + sizes[i % sizes.length]!);
  }
}

test.each([[[BLOCK_BYTES]], [[65_536]], [[1_000_003, 0, 7]], [[3 * BLOCK_BYTES + 5]]])(
  "chunks of %p bytes become whole blocks and a rest, the same bytes",
  async (sizes) => {
    const bytes = noise(2 * BLOCK_BYTES + 12_345, 3);
    const blocks: Uint8Array[] = [];
    for await (const block of inBlocks(pieces(bytes, sizes))) blocks.push(block.slice());
    expect(blocks.map(({ length }) => length)).toEqual([BLOCK_BYTES, BLOCK_BYTES, 12_345]);
    expect(Buffer.concat(blocks).equals(bytes)).toBe(true);
  },
);

test("no bytes are no block", async () => {
  expect(await Array.fromAsync(inBlocks(pieces(new Uint8Array(), [1])))).toEqual([]);
});
