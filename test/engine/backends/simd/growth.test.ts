/** Memory of a slot that is released: it leaves the process, and neighbours keep theirs to the bit. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect, test } from "bun:test";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import { makeNativeMemory } from "../../../../src/engine/backends/host/simd-memory.ts";
import type { Rows } from "../../../../src/engine/program/backend.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { simdLevels } from "./levels.ts";

const EMBEDDED = resolve(import.meta.dir, "../../../../models/hearth/hearth.gguf");
const isLinux = process.platform === "linux";

test.skipIf(!isLinux)("a discarded range holds zeros except at its ends, and memory around it is unchanged", () => {
  const memory = makeNativeMemory();
  const block = memory.allocate(40 * 2 ** 20, "a test");
  block.view.fill(7);
  const rss = (): number => Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync("/proc/self/status", "utf8"))![1]);
  const before = rss();
  const [first, bytes] = [4 * 2 ** 20 + 5, 32 * 2 ** 20 + 3];
  memory.discard!(block, first, bytes);
  expect(before - rss()).toBeGreaterThan(28 * 1024);
  expect(block.view.subarray(0, first).every((byte) => byte === 7)).toBe(true);
  expect(block.view.subarray(first + bytes).every((byte) => byte === 7)).toBe(true);
  expect(block.view.subarray(first + 2 ** 17, first + bytes - 2 ** 17).every((byte) => byte === 0)).toBe(true);
  memory.discard!(block, 100, 1000); // less than a page
  expect(block.view[500]).toBe(7);
  memory.release();
});

describe.skipIf(!isLinux || simdLevels.length === 0)("a session", () => {
  test("releases the memory of a slot, and this slot and the others give the same results again", async () => {
    const gguf = openGguf(EMBEDDED);
    const options = { ctxLen: 512, slots: 3, precise: false, threads: 1, cacheDir: undefined };
    const session = await simdLevels[0]!.backend.load(loadProgram(gguf), options);
    const rows = (slot: number, start: number, count: number): Rows => {
      const tokens = Int32Array.from({ length: count }, (_, i) => (slot * 17 + (start + i) * 5 + 3) % 4000);
      return { slot, start, tokens, logits: "last" };
    };
    const expected: Float32Array[] = [];
    for (const slot of [0, 1, 2]) expected.push((await session.run([rows(slot, 0, 300)])).slice());
    const next = (await session.run([rows(0, 300, 1)])).slice();
    expect(session.growth!.tokenBytes).toBe(6 * 2 * (64 + 64) * 2); // layers, heads, keys and values, float16
    session.growth!.release(1);
    expect((await session.run([rows(0, 300, 1)])).slice()).toEqual(next);
    for (const slot of [2, 1]) {
      const logits = await session.run([rows(slot, 0, 300)]);
      expect(logits.every((logit, i) => logit === expected[slot]![i])).toBe(true);
    }
    session.close();
    gguf.close();
  });
});
