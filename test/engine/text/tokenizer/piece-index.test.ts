import { expect, test } from "bun:test";
import fc from "fast-check";
import { makeRng } from "../../../../src/engine/text/rng.ts";
import {
  findJoined,
  findPiece,
  findRange,
  hashRange,
  indexPieces,
} from "../../../../src/engine/text/tokenizer/piece-index.ts";

test("every piece is found by its text, inside another text and from its halves, and no other text is", () => {
  const pieces = fc.uniqueArray(fc.string({ unit: fc.constantFrom(..."ab▁é🙂"), minLength: 1, maxLength: 6 }), {
    minLength: 1,
  });
  fc.assert(
    fc.property(pieces, fc.string({ unit: fc.constantFrom(..."ab▁é🙂") }), (list, other) => {
      const index = indexPieces(list, "key");
      for (const [id, piece] of list.entries()) {
        expect(findPiece(index, piece)).toBe(id);
        const inside = `x${piece}y`;
        expect(findRange(index, inside, 1, 1 + piece.length, hashRange(piece, 0, piece.length))).toBe(id);
        for (const right of list.keys()) expect(findJoined(index, id, right)).toBe(list.indexOf(piece + list[right]!));
      }
      expect(findPiece(index, other)).toBe(list.indexOf(other));
    }),
    { seed: 3, numRuns: 200 },
  );
});

test("two equal pieces are refused by name", () => {
  expect(() => indexPieces(["a", "b", "a"], "tokens")).toThrow(
    `metadata 'tokens': expected each piece once, got "a" as 0 and 2`,
  );
});

/** Two texts of equal length and hash, by the birthday paradox. */
function findCollision(): [string, string] {
  const rng = makeRng(1);
  const seen = new Map<number, string>();
  for (;;) {
    const text = rng.uint32().toString(36).padStart(8, "x");
    const hash = hashRange(text, 0, text.length);
    const other = seen.get(hash);
    if (other !== undefined && other !== text) return [other, text];
    seen.set(hash, text);
  }
}

test("pieces with equal hashes are all found, and more than 1,024 are refused", () => {
  const [x, y] = findCollision();
  /** Every chain of x and y has the same hash. */
  const chains = (count: number): string[] =>
    Array.from({ length: count }, (_, i) => Array.from({ length: 13 }, (_, bit) => ((i >> bit) & 1 ? x : y)).join(""));
  const few = chains(50);
  const index = indexPieces(few, "tokens");
  expect(new Set(index.hashes).size).toBe(1);
  expect(few.map((piece) => findPiece(index, piece))).toEqual([...few.keys()]);
  expect(() => indexPieces(chains(1100), "tokens")).toThrow("metadata 'tokens': more than 1024 pieces share a hash");
});
