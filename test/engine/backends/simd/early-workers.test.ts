/** Workers that start before a session, and their work meanwhile. */
import { expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { ptr } from "bun:ffi";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import { makePageFinder } from "../../../../src/engine/backends/host/page-finder.ts";
import { simdBackend } from "../../../../src/engine/backends/host/simd.ts";
import { EarlyWorkers } from "../../../../src/engine/backends/host/simd-workers.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { mapFile } from "../../../../src/engine/formats/files/map.ts";
import type { ByteSource } from "../../../../src/engine/formats/gguf/source.ts";
import { eventually } from "../../../e2e/hearth.ts";

const MIB = 2 ** 20;
const EMBEDDED = resolve(import.meta.dir, "../../../../models/hearth/hearth.gguf");
const onLinux = process.platform === "linux";

/** Maps a file of this size. */
async function withFile(bytes: number, use: (source: ByteSource, path: string) => void | Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "hearth-pages-"));
  const path = join(folder, "weights");
  writeFileSync(path, new Uint8Array(bytes));
  const source = mapFile(path);
  try {
    await use(source, path);
  } finally {
    source.close();
    rmSync(folder, { recursive: true });
  }
}

/** Bytes of a mapped file that are in this process's page table. */
function entered(path: string): number {
  const maps = readFileSync("/proc/self/smaps", "utf8").split(/\n(?=[0-9a-f]+-[0-9a-f]+ )/);
  const sizes = maps.filter((map) => map.includes(path)).map((map) => /^Rss:\s+(\d+)/m.exec(map)?.[1]);
  return sizes.reduce((sum, kilobytes) => sum + 1024 * Number(kilobytes ?? 0), 0);
}

/** Threads of this process that are Workers. */
function workerThreads(): string[] {
  const isWorker = (thread: string): boolean => {
    try {
      return readFileSync(`/proc/self/task/${thread}/comm`, "utf8") === "Worker\n";
    } catch {
      return false; // it ended meanwhile
    }
  };
  return readdirSync("/proc/self/task").filter(isWorker);
}

test.if(onLinux)("the page finder enters the pages of several ranges, a few in each step", () =>
  withFile(9 * MIB, (source, path) => {
    const finder = makePageFinder();
    expect(finder.step()).toBe(false);
    const rangeOf = (view: Uint8Array) => ({ address: ptr(view), byteLength: view.byteLength });
    finder.add(rangeOf(source.view(100, 5 * MIB)));
    finder.add(rangeOf(source.view(6 * MIB, 3 * MIB)));
    finder.step();
    expect(entered(path)).toBeLessThanOrEqual(4 * MIB);
    let steps = 1;
    while (finder.step()) steps++;
    expect(steps).toBeLessThan(10);
    expect(entered(path)).toBeGreaterThanOrEqual(8 * MIB);
    expect(finder.step()).toBe(false);
  }),
);

test.if(onLinux)("the page finder ignores memory that is no longer mapped", () =>
  withFile(4 * MIB, (source) => {
    const finder = makePageFinder();
    finder.add({ address: 4096, byteLength: 8 * MIB });
    expect(finder.step()).toBe(false);
    finder.add({ address: ptr(source.view(0, MIB)), byteLength: MIB });
    finder.add({ address: ptr(source.view(2 * MIB, MIB)), byteLength: MIB });
    source.close();
    expect(finder.step()).toBe(false);
  }),
);

test.if(onLinux)("Workers enter the pages of a large file, and only one session takes them", () =>
  withFile(65 * MIB, async (source, path) => {
    const early = new EarlyWorkers(3);
    early.opened(source);
    expect(await eventually(() => entered(path) >= 64 * MIB)).toBe(true);
    expect(early.take(2)).toBeUndefined();
    const workers = early.take(3)!;
    expect(workers).toHaveLength(2);
    expect(early.take(3)).toBeUndefined();
    early.end();
    for (const worker of workers) worker.terminate();
  }),
);

test.if(onLinux)("a session with Workers that were started before it gives the same results", () =>
  withFile(65 * MIB, async (source) => {
    const gguf = openGguf(EMBEDDED);
    const program = loadProgram(gguf);
    const options = { ctxLen: 64, slots: 1, threads: 2, precise: false, cacheDir: undefined };
    const rows = {
      slot: 0,
      start: 0,
      tokens: Int32Array.from({ length: 40 }, (_, i) => i + 5),
      logits: "last",
    } as const;
    const alone = await simdBackend.load(program, options);
    const begun = simdBackend.begin!(options) as EarlyWorkers;
    begun.opened(source);
    const session = await simdBackend.load(program, { ...options, begun });
    expect(begun.take(2)).toBeUndefined();
    begun.end();
    expect([...(await session.run([rows]))]).toEqual([...(await alone.run([rows]))]);
    for (const each of [alone, session]) each.close();
    gguf.close();
  }),
);

test("no Worker starts early for a small file, a copied file or one thread", () =>
  withFile(MIB, (source) => {
    const early = new EarlyWorkers(2);
    early.opened(source);
    early.opened({ ...source, byteLength: 100 * MIB, copies: true });
    expect(early.take(2)).toBeUndefined();
    const alone = new EarlyWorkers(1);
    alone.opened({ ...source, byteLength: 100 * MIB });
    expect(alone.take(2)).toBeUndefined();
  }));

test.if(onLinux)("Workers that no session takes end", () =>
  withFile(65 * MIB, async (source, path) => {
    const before = workerThreads();
    const started = () => workerThreads().filter((thread) => !before.includes(thread)).length;
    const early = new EarlyWorkers(9);
    early.opened(source);
    expect(await eventually(() => started() === 8 && entered(path) > 0)).toBe(true);
    early.end();
    expect(await eventually(() => started() === 0)).toBe(true);
  }),
);
