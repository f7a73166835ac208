/** Packed graphs on disk: reused, rebuilt when damaged or old, never half-made, never more than the limit. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { closeSync, openSync, readdirSync, readFileSync, rmSync, statSync, truncateSync } from "node:fs";
import { utimesSync, writeFileSync, writeSync } from "node:fs";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import type { Program } from "../../../../src/engine/program/backend.ts";
import { MODEL_NAME, pruneEntries, WEIGHTS_NAME } from "../../../../src/engine/backends/onnx/cache.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { startOnnx, type BackendChild } from "../child.ts";
import { differences } from "../compare.ts";

const EMBEDDED = resolve(import.meta.dir, "../../../../models/hearth/hearth.gguf");
const TOKENS = Int32Array.of(7, 300, 21, 1999, 5);
const onnx = startOnnx({ cachedBytesMin: 0 });
afterAll(() => onnx.stop());

let folder = "";
/** Logits of a load without a cache. */
let expected: Float32Array;
/** A cache with one good entry. */
let pristine = "";
beforeAll(async () => {
  pristine = await mkdtemp(join(tmpdir(), "hearth-onnx-entry-"));
  expected = await load({ cacheDir: undefined });
  await load({ cacheDir: pristine });
});
afterAll(() => rm(pristine, { recursive: true }));
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-onnx-cache-"))));
afterEach(() => rm(folder, { recursive: true }));

interface Load {
  readonly cacheDir: string | undefined;
  readonly path?: string;
  readonly precise?: boolean;
  readonly child?: BackendChild;
}

/** Loads a model, and returns its logits for a few tokens. */
async function load({ cacheDir, path = EMBEDDED, precise = false, child = onnx }: Load): Promise<Float32Array> {
  const gguf = openGguf(path);
  let program: Program;
  try {
    program = loadProgram(gguf);
    const session = await child.backend.load(program, { ctxLen: 16, slots: 1, precise, threads: 1, cacheDir });
    const logits = await session.run([{ slot: 0, start: 0, tokens: TOKENS, logits: "last" }]);
    session.close();
    return logits;
  } finally {
    gguf.close();
  }
}

const names = (): string[] => readdirSync(folder).sort();
/** Creation time of an entry: changes with every rebuild. */
const madeAt = (entry: string): unknown => {
  const { ino, mtimeMs } = statSync(join(folder, entry, WEIGHTS_NAME));
  return [ino, mtimeMs];
};

describe("an entry", () => {
  test("is made by the first load and used by the second, with the logits of a load without a cache", async () => {
    await load({ cacheDir: folder });
    const [entry, ...more] = names();
    expect(more).toEqual([]);
    const made = madeAt(entry!);
    expect(differences(await load({ cacheDir: folder }), expected)).toBe(0);
    expect([names(), madeAt(entry!)]).toEqual([[entry!], made]);
  });

  test("belongs to one file and one precision", async () => {
    const path = join(folder, "copy.gguf");
    await cp(EMBEDDED, path);
    const cacheDir = join(folder, "cache");
    const count = (): number => readdirSync(cacheDir).length;
    await load({ cacheDir, path });
    await load({ cacheDir, path });
    expect(count()).toBe(1);
    await load({ cacheDir, path, precise: true });
    expect(count()).toBe(2);
    utimesSync(path, new Date(), new Date(Date.now() - 5000)); // the file was modified
    await load({ cacheDir, path });
    expect(count()).toBe(3);
  });

  test("stays valid if only the modification time of its blob changes", async () => {
    const path = join(folder, `sha256-${"0".repeat(64)}`);
    await cp(EMBEDDED, path);
    const cacheDir = join(folder, "cache");
    await load({ cacheDir, path });
    const [entry = ""] = readdirSync(cacheDir);
    const made = statSync(join(cacheDir, entry, WEIGHTS_NAME)).ino;
    utimesSync(path, new Date(), new Date());
    expect(differences(await load({ cacheDir, path }), expected)).toEqual(0);
    expect(readdirSync(cacheDir)).toEqual([entry]);
    expect(statSync(join(cacheDir, entry, WEIGHTS_NAME)).ino).toBe(made);
  });

  const damages: Readonly<Record<string, (entry: string) => void>> = {
    "weights that end early": (entry) => {
      const path = join(entry, WEIGHTS_NAME);
      truncateSync(path, statSync(path).size - 1);
    },
    "weights with wrong bytes": (entry) => overwrite(join(entry, WEIGHTS_NAME), 0),
    "weights with a hole at their end": (entry) => {
      const path = join(entry, WEIGHTS_NAME);
      const { size } = statSync(path);
      truncateSync(path, Math.floor(size / 2));
      truncateSync(path, size);
    },
    "a damaged graph": (entry) => overwrite(join(entry, MODEL_NAME), 100),
    "no weights": (entry) => rmSync(join(entry, WEIGHTS_NAME)),
    "no graph": (entry) => rmSync(join(entry, MODEL_NAME)),
    "no manifest": (entry) => rmSync(join(entry, "entry.json")),
    "a damaged manifest": (entry) => overwrite(join(entry, "entry.json"), 0),
    "a manifest of another format": (entry) => {
      const path = join(entry, "entry.json");
      writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), format: 0 }));
    },
  };
  for (const [what, damage] of Object.entries(damages)) {
    test(`is made again if it has ${what}`, async () => {
      await cp(pristine, folder, { recursive: true });
      const [entry] = names();
      await Bun.write(join(folder, entry!, "marker"), "gone when the entry is made again");
      damage(join(folder, entry!));
      expect(differences(await load({ cacheDir: folder }), expected)).toBe(0);
      expect(names()).toEqual([entry!]);
      expect(readdirSync(join(folder, entry!)).sort()).toEqual(["entry.json", MODEL_NAME, WEIGHTS_NAME]);
    });
  }

  test("is not used if the process that wrote it died, and is removed when it is old", async () => {
    const dying = startOnnx({ cachedBytesMin: 0, dieAt: 0.2 });
    const failure = await load({ cacheDir: folder, child: dying }).catch((error: unknown) => error);
    expect(String(failure)).toContain("the child is gone");
    const [unfinished, ...more] = names();
    expect([unfinished?.startsWith("onnx.tmp-"), more]).toEqual([true, []]);
    expect(differences(await load({ cacheDir: folder }), expected)).toBe(0);
    expect(names()).toContain(unfinished!); // it may belong to a running process
    const long = new Date(Date.now() - 2 * 60 * 60 * 1000);
    utimesSync(join(folder, unfinished!), long, long);
    await load({ cacheDir: folder, precise: true });
    expect(names().every((name) => name.startsWith("onnx-"))).toBe(true);
    expect(names()).toHaveLength(2);
  });

  test("is one if two processes make it at once, and both give the same logits", async () => {
    const other = startOnnx({ cachedBytesMin: 0 });
    try {
      const both = [load({ cacheDir: folder }), load({ cacheDir: folder, child: other })];
      for (const logits of await Promise.all(both)) expect(differences(logits, expected)).toBe(0);
      expect(names()).toHaveLength(1);
    } finally {
      await other.stop();
    }
  });

  test("is not made for a small model, which is packed quickly", async () => {
    const child = startOnnx();
    try {
      await load({ cacheDir: folder, child });
      expect(names()).toEqual([]);
    } finally {
      await child.stop();
    }
  });
});

test("pruning removes the least recently used entries, and never the entry in use", async () => {
  const bytes = new Uint8Array(64 * 1024).fill(1);
  for (const [age, name] of ["onnx-new", "onnx-middle", "onnx-old", "onnx-kept"].entries()) {
    await Bun.write(join(folder, name, WEIGHTS_NAME), bytes);
    const used = new Date(Date.now() - age * 60_000);
    utimesSync(join(folder, name), used, used);
  }
  await Bun.write(join(folder, "something-else", WEIGHTS_NAME), bytes);
  pruneEntries(folder, "onnx-kept", 3 * bytes.length);
  expect(names()).toEqual(["onnx-kept", "onnx-middle", "onnx-new", "something-else"]);
  pruneEntries(folder, "onnx-kept", 0);
  expect(names()).toEqual(["onnx-kept", "something-else"]);
});

/** Overwrites bytes of a file; its size stays. */
function overwrite(path: string, at: number): void {
  const file = openSync(path, "r+");
  writeSync(file, new Uint8Array(64).fill(0xa5), 0, Math.min(64, statSync(path).size - at), at);
  closeSync(file);
}
