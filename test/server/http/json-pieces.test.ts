import { expect, test } from "bun:test";
import fc from "fast-check";
import { encodeJson, jsonNumber, jsonPieces } from "../../../src/server/http/json-pieces.ts";

const SEED = 20_261_121;
const present = new AbortController().signal;
const textOf = (value: unknown): string => [...jsonPieces(value)].join("");

test(`the joined pieces equal the result of JSON.stringify (seed ${SEED})`, () => {
  const value = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: "medium" },
      fc.string({ unit: "grapheme" }),
      fc.boolean(),
      fc.integer(),
      fc.constant(null),
      fc.array(tie("value"), { maxLength: 200 }),
      fc.dictionary(fc.string(), fc.option(tie("value"), { nil: undefined })),
    ),
  })).value;
  fc.assert(
    fc.property(value, (each) => expect(textOf(each)).toBe(JSON.stringify(each))),
    { numRuns: 500, seed: SEED },
  );
});

test("lists of any length are complete, around the boundaries of slices too", async () => {
  for (const length of [0, 1, 63, 64, 65, 127, 128, 129, 100_000]) {
    const words = Array.from({ length }, (_, i) => `wörd ${i}`);
    const numbers = Int32Array.from({ length }, (_, i) => i);
    const reply = await (await encodeJson({ words, numbers }, present)).text();
    expect(reply).toBe(JSON.stringify({ words, numbers: [...numbers] }));
  }
});

test("a large value is split into pieces of less than 1,000 characters", () => {
  const longest = Math.max(
    ...[...jsonPieces({ words: Array.from({ length: 10_000 }, () => "0123456789") })].map((p) => p.length),
  );
  expect(longest).toBeLessThan(1000);
});

test("typed arrays become lists with the shortest digits of their values", () => {
  expect(
    textOf({ a: Float32Array.of(0.1, 1e-5, 3, NaN), b: BigInt64Array.of(-1n, 2n ** 62n), c: new Uint8Array(0) }),
  ).toBe('{"a":[0.1,0.00001,3,null],"b":[-1,4611686018427388000],"c":[]}');
  expect(textOf([[Float32Array.of(0.2)], []])).toBe("[[[0.2]],[]]");
});

test("a float32 keeps its value to the last bit, and a double stays unchanged", () => {
  fc.assert(
    fc.property(fc.float({ noNaN: true }), (value) => expect(Math.fround(jsonNumber(value))).toBe(value)),
    { seed: SEED },
  );
  expect(jsonNumber(0.1)).toBe(0.1);
  expect(jsonNumber(Math.fround(0.1))).toBe(0.1);
});

test("timers run while a large value is written", async () => {
  let turns = 0;
  const timer = setInterval(() => turns++, 1);
  await encodeJson(
    Array.from({ length: 2_000_000 }, () => "word"),
    present,
  );
  clearInterval(timer);
  expect(turns).toBeGreaterThan(2);
});

test("writing stops if the client has disconnected", async () => {
  const gone = new AbortController();
  const writing = encodeJson(
    Array.from({ length: 2_000_000 }, () => "word"),
    gone.signal,
  );
  gone.abort();
  await expect(writing).rejects.toMatchObject({ code: "cancelled" });
});
