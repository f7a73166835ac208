/**
 * Hostile files: for any bytes, reading ends soon with a value or an `AppError`, with memory in proportion to the file.
 * More runs: `GGUF_FUZZ_RUNS=1000000 bun test test/engine/formats/gguf/fuzz.test.ts`.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { AppError } from "../../../../src/base/errors.ts";
import { parseGguf } from "../../../../src/engine/formats/gguf/parse.ts";
import { encodeGguf, smallModel } from "./fixture.ts";
import { cpuMs } from "../../../cpu-time.ts";

const RUNS = Number(process.env["GGUF_FUZZ_RUNS"] ?? 20_000);
const SEED = 20_261_121;
const MAX_MS = 5000;

const whole = encodeGguf({
  ...smallModel,
  metadata: {
    ...smallModel.metadata,
    "a.nest": [[Uint8Array.of(1, 2)], []],
    "a.flags": [true, false],
    "a.big": { u64: 9 },
  },
});

/** Values at which arithmetic on sizes may fail. */
const edges = [
  0n,
  1n,
  2n ** 16n,
  2n ** 31n - 1n,
  2n ** 31n,
  2n ** 32n - 1n,
  2n ** 32n,
  2n ** 53n,
  2n ** 63n,
  2n ** 64n - 1n,
];

type Mutation = (bytes: Buffer) => Buffer;

const at = fc.nat(whole.length - 9);
const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  fc.tuple(at, fc.nat(7)).map(
    ([i, bit]): Mutation =>
      (bytes) =>
        change(bytes, () => (bytes[i]! ^= 1 << bit)),
  ),
  fc.tuple(at, fc.nat(255)).map(
    ([i, byte]): Mutation =>
      (bytes) =>
        change(bytes, () => (bytes[i] = byte)),
  ),
  fc.tuple(at, fc.constantFrom(...edges)).map(
    ([i, value]): Mutation =>
      (bytes) =>
        change(bytes, () => bytes.writeBigUInt64LE(value, i)),
  ),
  fc.tuple(at, fc.nat(14)).map(
    ([i, type]): Mutation =>
      (bytes) =>
        change(bytes, () => bytes.writeUInt32LE(type, i)),
  ),
  fc.tuple(at, at, fc.nat(64)).map(
    ([from, to, count]): Mutation =>
      (bytes) =>
        change(bytes, () => bytes.copy(bytes, to, from, from + count)),
  ),
  at.map(
    (length): Mutation =>
      (bytes) =>
        bytes.subarray(0, Math.max(length, 9)),
  ),
);

/** Applies a change if it lies inside the bytes. */
function change(bytes: Buffer, run: () => unknown): Buffer {
  try {
    run();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
  }
  return bytes;
}

/** Parses; true for a value, false for an AppError. Rethrows anything else. */
function survives(bytes: Uint8Array): boolean {
  const start = cpuMs();
  try {
    parseGguf(bytes, "m.gguf");
    return true;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    expect(error.message).toStartWith("m.gguf: ");
    return false;
  } finally {
    expect(cpuMs() - start).toBeLessThan(MAX_MS);
  }
}

test(`random bytes are a value or an AppError (seed ${SEED})`, () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), fc.boolean(), (bytes, withMagic) => {
      survives(withMagic ? Buffer.concat([whole.subarray(0, 8), bytes]) : bytes);
    }),
    { numRuns: RUNS / 4, seed: SEED },
  );
});

test(`flipped, overwritten, moved and cut bytes are a value or an AppError (seed ${SEED})`, () => {
  let values = 0;
  let errors = 0;
  fc.assert(
    fc.property(fc.array(mutation, { minLength: 1, maxLength: 4 }), (mutations) => {
      const bytes = mutations.reduce<Buffer>((sum, mutate) => mutate(sum), Buffer.from(whole));
      if (survives(bytes)) values++;
      else errors++;
    }),
    { numRuns: RUNS, seed: SEED },
  );
  expect(values).toBeGreaterThan(RUNS / 50); // otherwise the mutations are too coarse to get past the first fields
  expect(errors).toBeGreaterThan(RUNS / 4);
});

test("every bit of a header flipped once is a value or an AppError", () => {
  for (let i = 0; i < whole.length * 8; i++) {
    const bytes = Buffer.from(whole);
    bytes[i >> 3]! ^= 1 << (i & 7);
    survives(bytes);
  }
});

test("a file full of the cheapest items takes no more memory than a few times its size", () => {
  const script = `
    import { parseGguf } from "./src/engine/formats/gguf/parse.ts";
    const [type, itemBytes, inner] = JSON.parse(process.argv[1]);
    const size = 32 * 2 ** 20;
    const bytes = Buffer.alloc(size);
    bytes.write("GGUF");
    bytes.writeUInt32LE(3, 4);
    bytes.writeUInt32LE(1, 16);
    bytes.writeUInt32LE(1, 24);
    bytes.write("k", 32);
    bytes.writeUInt32LE(9, 33);
    bytes.writeUInt32LE(type, 37);
    bytes.writeUInt32LE(Math.floor((size - 49) / itemBytes), 41);
    const before = process.memoryUsage.rss();
    const start = performance.now();
    let result = "value";
    try { parseGguf(bytes, "m.gguf"); } catch (error) { result = error.code; }
    const ratio = (process.memoryUsage.rss() - before) / size;
    console.log(JSON.stringify({ result, ratio, ms: performance.now() - start }));`;
  for (const item of [
    [8, 8], // empty strings
    [7, 1], // bools
    [9, 12], // empty arrays
    [0, 1], // bytes
  ]) {
    const { stdout, stderr } = Bun.spawnSync([process.execPath, "-e", script, JSON.stringify(item)]);
    if (stdout.length === 0) throw new Error(stderr.toString());
    const { result, ratio } = JSON.parse(stdout.toString()) as { result: string; ratio: number };
    expect(["value", "bad_file"]).toContain(result);
    expect({ item, small: ratio < 16, ratio }).toEqual({ item, small: true, ratio });
  }
});
