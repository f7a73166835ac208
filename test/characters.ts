/** Characters that property tests draw. */
import fc from "fast-check";

const [SURROGATES_START, SURROGATES, LAST] = [0xd800, 0x800, 0x10ffff];

/**
 * Any character of Unicode, generated and shrunk like fast-check's unit "binary", which builds a table of all
 * characters in every process and takes a second for it; this computes them.
 */
export const anyCharacter: fc.Arbitrary<string> = fc
  .nat({ max: LAST - SURROGATES })
  .map((index) => String.fromCodePoint(index < SURROGATES_START ? index : index + SURROGATES), indexOf);

function indexOf(value: unknown): number {
  if (typeof value !== "string" || !/^[^\p{Surrogate}]$/u.test(value)) throw new Error("no character");
  const code = value.codePointAt(0)!;
  return code < SURROGATES_START ? code : code - SURROGATES;
}
