/** Headers read piece by piece: the same values and the same errors as from the whole file in memory. */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { mkdir, truncate, writeFile } from "node:fs/promises";
import fc from "fast-check";
import { AppError } from "../../../../src/base/errors.ts";
import { makeCursor, moveWindow } from "../../../../src/engine/formats/gguf/cursor.ts";
import { readHeader } from "../../../../src/engine/formats/files/read-header.ts";
import { headerSteps, parseGguf, type Header, type ParseOptions } from "../../../../src/engine/formats/gguf/parse.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../../src/engine/formats/files/write.ts";
import { golden, goldenTest, hasGolden } from "../../../golden.ts";
import { encodeGguf, failure, patch, smallModel, withFolder } from "../gguf/fixture.ts";

const SEED = 20_261_121;

const longName = { ...smallModel.tensors[1]!, name: "long.".repeat(50) };
const rich = encodeGguf({
  tensors: [...smallModel.tensors, longName],
  metadata: {
    ...smallModel.metadata,
    "a.nest": [[Uint8Array.of(1, 2), new Uint8Array(9)], []],
    "a.flags": [true, false, true],
    "a.big": { u64: 9 },
    "a.text": "x".repeat(300),
    "a.long": ["y".repeat(100), "", "z".repeat(50)],
    "a.numbers": Float64Array.of(1, 2, 3, 4, 5, 6),
  },
});

/** Parses with a window of `windowBytes`, or of a larger size that the parser requests. */
function parseByWindow(bytes: Uint8Array, windowBytes: number, options: ParseOptions = {}): Header {
  const cursor = makeCursor(new Uint8Array(0), "m.gguf", bytes.length);
  const steps = headerSteps(cursor, { ...options, fileBytes: bytes.length });
  for (let turns = 0; ; turns++) {
    const step = steps.next();
    if (step.done) return step.value;
    if (turns > 4 * bytes.length) throw new Error("the parser asks for ever");
    const end = Math.min(cursor.at + Math.max(step.value, windowBytes), bytes.length);
    moveWindow(cursor, bytes.slice(cursor.at, end));
  }
}

/** The header or the error, as text: Bun treats typed arrays with NaN as unequal. */
function outcome(run: () => Header): string {
  try {
    return Bun.inspect(run(), { depth: 9 });
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return `${error.code}: ${error.message}`;
  }
}

const isError = (text: string): boolean => /^(bad_file|unsupported): m.gguf: /.test(text);

async function failureOf(run: Promise<unknown>): Promise<string> {
  return run.then(
    () => "no failure",
    (error) => (error instanceof AppError ? `${error.code}: ${error.message}` : `not an AppError: ${error}`),
  );
}

test("a header parses to the same value through windows of any size", () => {
  const whole = parseGguf(rich, "m.gguf");
  for (let size = 1; size <= rich.length; size++) expect(parseByWindow(rich, size)).toEqual(whole);
});

test("skipping long arrays keeps all other values, through windows of any size", () => {
  const whole = parseGguf(rich, "m.gguf");
  const skipped = new Map(whole.metadata)
    .set("a.long", [])
    .set("a.flags", [])
    .set("a.numbers", new Float64Array(0))
    .set("a.nest", [[Uint8Array.of(1, 2), new Uint8Array(0)], []])
    .set("tokenizer.ggml.tokens", [])
    .set("tokenizer.ggml.token_type", new Int32Array(0));
  for (let size = 1; size <= rich.length; size++) {
    expect(parseByWindow(rich, size, { arrayItemsMax: 2 })).toEqual({ ...whole, metadata: skipped });
  }
});

test("an array of exactly arrayItemsMax items is kept", () => {
  const { metadata } = parseGguf(rich, "m.gguf", { arrayItemsMax: 3 });
  expect(metadata.get("a.flags")).toEqual([true, false, true]);
  expect(metadata.get("tokenizer.ggml.tokens")).toEqual(["<s>", "▁a", "é"]);
  expect(metadata.get("a.numbers")).toEqual(new Float64Array(0));
  expect(parseGguf(rich, "m.gguf", { arrayItemsMax: 1 }).metadata.get("a.nest")).toEqual([]);
});

test(`broken bytes give the same value or error through small windows, with and without skipped arrays (seed ${SEED})`, () => {
  const at = fc.nat(rich.length - 9);
  const edge = fc.constantFrom(0n, 1n, 7n, 2n ** 16n, 2n ** 31n, 2n ** 32n - 1n, 2n ** 53n, 2n ** 64n - 1n);
  const change = fc.oneof(
    fc.record({ at, byte: fc.nat(255) }),
    fc.record({ at, u64: edge }),
    fc.record({ at, cut: fc.constant(true) }),
  );
  let errors = 0;
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 3 }), fc.nat(400), (changes, windowBytes) => {
      let bytes = Buffer.from(rich);
      for (const each of changes) {
        if ("byte" in each && each.at < bytes.length) bytes[each.at] = each.byte;
        if ("u64" in each && each.at + 8 <= bytes.length) bytes = patch(bytes, { after: each.at, u64: each.u64 });
        if ("cut" in each) bytes = bytes.subarray(0, each.at);
      }
      const expected = outcome(() => parseGguf(bytes, "m.gguf"));
      expect(outcome(() => parseByWindow(bytes, windowBytes))).toBe(expected);
      const stepped = outcome(() => parseByWindow(bytes, windowBytes, { arrayItemsMax: 1 }));
      expect(stepped).toBe(
        isError(expected) ? expected : outcome(() => parseGguf(bytes, "m.gguf", { arrayItemsMax: 1 })),
      );
      if (isError(expected)) errors++;
      else expect(isError(stepped)).toBe(false);
    }),
    { numRuns: 3_000, seed: SEED },
  );
  expect(errors).toBeGreaterThan(500);
});

test("readHeader gives the header that openGguf gives", () =>
  withFolder(async (path) => {
    await writeFile(path("m.gguf"), rich);
    const gguf = openGguf(path("m.gguf"));
    const { version, metadata, tensors, fileBytes } = gguf;
    gguf.close();
    expect(await readHeader(path("m.gguf"))).toEqual({ path: path("m.gguf"), version, metadata, tensors, fileBytes });
  }));

test("a header of several megabytes is read whole", () =>
  withFolder(async (path) => {
    const metadata = {
      "a.text": "é".repeat(400_000),
      "a.words": Array.from({ length: 60_000 }, (_, i) => `word ${i}`),
      "a.scores": Float32Array.from({ length: 200_000 }, (_, i) => i / 3),
      "a.flags": Array.from({ length: 300_000 }, (_, i) => i % 3 === 0),
      "a.last": { u32: 7 },
    };
    await writeFile(path("m.gguf"), encodeGguf({ ...smallModel, metadata }));
    const gguf = openGguf(path("m.gguf"));
    const header = await readHeader(path("m.gguf"));
    expect(header.metadata).toEqual(gguf.metadata);
    expect(header.tensors).toEqual(gguf.tensors);
    const few = await readHeader(path("m.gguf"), { arrayItemsMax: 5 });
    expect(few.metadata.get("a.last")).toBe(7);
    expect(few.metadata.get("a.words")).toEqual([]);
    expect(few.tensors).toEqual(gguf.tensors);
    gguf.close();
  }));

test("readHeader fails as openGguf does for missing, irregular, empty and truncated files", () =>
  withFolder(async (path) => {
    await mkdir(path("folder"));
    await writeFile(path("empty"), "");
    await writeFile(path("cut"), rich.subarray(0, 200));
    await writeFile(path("short"), rich.subarray(0, -40));
    if (process.platform !== "win32") Bun.spawnSync(["mkfifo", path("pipe")]);
    for (const name of ["none", "folder", "empty", "cut", "short", ...(process.platform === "win32" ? [] : ["pipe"])]) {
      expect(await failureOf(readHeader(path(name)))).toBe(failure(() => openGguf(path(name)).close()));
    }
  }));

test("a file that is truncated while readHeader reads it is an error", () =>
  withFolder(async (path) => {
    const words = Array.from({ length: 400_000 }, (_, i) => `a longer word ${i}`);
    const whole = encodeGguf({ ...smallModel, metadata: { words } });
    const ends: string[] = [];
    for (let attempt = 0; attempt < 20 && !ends.at(-1)?.includes("while"); attempt++) {
      await writeFile(path("m.gguf"), whole);
      const reading = failureOf(readHeader(path("m.gguf")));
      await Bun.sleep(attempt % 5);
      await truncate(path("m.gguf"), 300_000);
      ends.push(await reading);
    }
    // Truncated before or after it was read, it is another error or no error.
    expect(ends.at(-1)).toBe(`bad_file: ${path("m.gguf")}: the file ended while it was read`);
    expect(ends.filter((end) => end.startsWith("not an AppError"))).toEqual([]);
  }));

test("readHeader reads all parts of a split model, and names a missing part", () =>
  withFolder(async (path) => {
    const part = (no: number): string => path(`m-0000${no}-of-00002.gguf`);
    for (const [no, tensor] of smallModel.tensors.entries()) {
      const split = { "split.no": { u32: no }, "split.count": { u32: 2 }, "split.tensors.count": { u32: 2 } };
      await writeGguf(part(no + 1), { metadata: split, tensors: [tensor] });
    }
    const gguf = openGguf(part(1));
    const header = await readHeader(part(1));
    expect(header.tensors).toEqual(gguf.tensors);
    expect(header.fileBytes).toBe(gguf.fileBytes);
    gguf.close();
    expect(await failureOf(readHeader(part(2)))).toBe(failure(() => openGguf(part(2))));
    await Bun.file(part(2)).delete();
    expect(await failureOf(readHeader(part(1)))).toBe(failure(() => openGguf(part(1))));
  }));

for (const folder of ["vocab", "archs", "bert"]) {
  goldenTest(`readHeader gives openGguf's header for every reference file in ${folder}/`, async () => {
    const names = hasGolden ? readdirSync(golden(folder)).filter((name) => name.endsWith(".gguf")) : [];
    expect(names.length).toBeGreaterThan(1);
    for (const name of names) {
      const path = golden(`${folder}/${name}`);
      const gguf = openGguf(path);
      const header = await readHeader(path);
      expect(Bun.deepEquals(header.metadata, gguf.metadata, true)).toBe(true);
      expect(Bun.deepEquals(header.tensors, gguf.tensors, true)).toBe(true);
      const few = await readHeader(path, { arrayItemsMax: 5 });
      expect([...few.metadata.keys()]).toEqual([...gguf.metadata.keys()]);
      for (const [key, value] of gguf.metadata) {
        const isLong = typeof value === "object" && value.length > 5;
        expect(few.metadata.get(key)).toEqual(isLong ? value.slice(0, 0) : value);
      }
      gguf.close();
    }
  });
}
