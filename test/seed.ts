/**
 * The single seed of a test process: `$HEARTH_TEST_SEED`, else random. Everything random in a test follows from it,
 * including fast-check's values; setup.ts prints it, so that a failure can be replayed.
 */
import { makeRng, randomSeed, type Rng } from "../src/engine/text/rng.ts";

/** The name of the environment variable. */
export const SEED_VARIABLE = "HEARTH_TEST_SEED";

/** Throws if the variable is not an integer from 0 to 2³¹ − 1, the range of fast-check's seeds. */
function readSeed(): number {
  const given = process.env[SEED_VARIABLE];
  if (given === undefined || given === "") return randomSeed() >>> 1;
  const seed = Number(given);
  if (!/^\d+$/.test(given) || seed > 0x7fff_ffff)
    throw new Error(`${SEED_VARIABLE}: expected an integer from 0 to 2147483647, got '${given}'`);
  return seed;
}

export const testSeed: number = readSeed();

/** A generator that depends on the process's seed and on `stream` alone: a test's name, the number of a round. */
export function testRng(stream: string | number): Rng {
  return makeRng(testSeed + 2 ** 32 * (Bun.hash.crc32(`${stream}`) & 0xf_ffff)); // a safe integer
}

/**
 * Draws `count` of a list's cases by the seed, in the list's order: each tree runs others, and the same ones again.
 * `HEARTH_TEST_CASES=all` takes all of them.
 */
export function drawn<T>(stream: string, list: readonly T[], count: number): T[] {
  if (process.env["HEARTH_TEST_CASES"] === "all") return [...list];
  const rng = testRng(stream);
  const order = list.map((_, i) => ({ i, at: rng.uint32() })).toSorted((a, b) => a.at - b.at);
  const taken = new Set(order.slice(0, count).map(({ i }) => i));
  return list.filter((_, i) => taken.has(i));
}
