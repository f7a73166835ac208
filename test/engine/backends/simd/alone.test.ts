/** Passes that are left to one thread: short steps of small models, right after a prompt. */
import { afterAll, expect, test } from "bun:test";
import { resolve } from "node:path";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import type { Session } from "../../../../src/engine/program/backend.ts";
import { findLevel } from "../../../../src/engine/backends/host/simd-library.ts";
import { makeNativeMemory } from "../../../../src/engine/backends/host/simd-memory.ts";
import { openKernels } from "../../../../src/engine/backends/host/simd-workers.ts";
import { makeSession } from "../../../../src/engine/backends/simd/session.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";

const found = findLevel();
const gguf = openGguf(resolve(import.meta.dir, "../../../../models/hearth/hearth.gguf"));
afterAll(() => gguf.close());

/** Runs the rows of each pass; returns the passes that were left to one thread. */
async function aloneOf(
  small: boolean,
  passes: readonly (readonly [rows: number, drafted?: true])[],
): Promise<boolean[]> {
  if ("reason" in found) throw new Error(found.reason);
  const kernels = openKernels(found.file);
  const alone: boolean[] = [];
  const session: Session = makeSession(
    loadProgram(gguf),
    { ctxLen: 128, slots: 1, precise: false, threads: 1, cacheDir: undefined, small },
    {
      backend: "simd",
      level: found.level,
      build: "",
      features: 0,
      panelRows: found.panelRows,
      threads: 1,
      memory: makeNativeMemory(),
      start: (header) => {
        const run = (isAlone: boolean) => () => {
          alone.push(isAlone);
          kernels.run(header, 0);
        };
        return { run: run(false), runAlone: run(true), dismiss: (gone) => gone() };
      },
    },
  );
  let start = 0;
  for (const [count, drafted] of passes) {
    const tokens = Int32Array.from({ length: count }, (_, i) => 300 + i);
    await session.run([{ slot: 0, start, tokens, logits: "last", ...(drafted && { drafted }) }]);
    start += count;
  }
  session.close();
  return alone;
}

const CHAT = [[20], [1], [5, true], [1], [20], [9, true], [1], [1]] as const;

test.skipIf("reason" in found)(
  "two steps of at most eight rows after each prompt of a small model run on one thread",
  async () => {
    expect(await aloneOf(true, CHAT)).toEqual([false, true, true, false, false, false, true, false]);
  },
);

test.skipIf("reason" in found)("no step of a larger model is left to one thread", async () => {
  expect(await aloneOf(false, CHAT)).not.toContain(true);
});
