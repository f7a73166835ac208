/** The JavaScript binding and the C API give the same results. */
import { afterAll, expect, test } from "bun:test";
import { resolve } from "node:path";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import type { Rows, Session } from "../../../../src/engine/program/backend.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { startOnnx } from "../child.ts";
import { differences } from "../compare.ts";

const EMBEDDED = resolve(import.meta.dir, "../../../../models/hearth/hearth.gguf");
const options = { ctxLen: 64, slots: 3, precise: false, threads: 1, cacheDir: undefined };

const native = startOnnx({ native: true });
const fallback = startOnnx({ native: false });
afterAll(() => Promise.all([native.stop(), fallback.stop()]));

function rows(slot: number, start: number, count: number, logits: Rows["logits"] = "last"): Rows {
  return {
    slot,
    start,
    tokens: Int32Array.from({ length: count }, (_, i) => 40 + slot * 100 + 7 * (start + i)),
    logits,
  };
}

async function use(session: Session): Promise<Float32Array[]> {
  const results = [await session.run([rows(0, 0, 12, "all")]), await session.run([rows(2, 0, 5)])];
  results.push(await session.run([rows(1, 0, 4, "none"), rows(0, 12, 3)]));
  results.push(await session.run([rows(0, 15, 1), rows(1, 4, 1), rows(2, 5, 1)]));
  session.copy({ from: 0, to: 1, length: 10 });
  session.shift(0, { keep: 2, discard: 6, length: 16 });
  results.push(await session.run([rows(0, 10, 1), rows(1, 10, 1)]));
  session.close();
  return results;
}

test("a model gives the same logits through the binding as through the C API", async () => {
  const gguf = openGguf(EMBEDDED);
  const program = loadProgram(gguf);
  const sessions = [
    await native.backend.load(program, options),
    await fallback.backend.load(program, options),
  ] as const;
  gguf.close();
  const [expected, got] = [await use(sessions[0]), await use(sessions[1])];
  for (const [i, logits] of got.entries()) expect(differences(logits, expected[i]!), `run ${i}`).toBe(0);
  expect(sessions.map(({ device }) => device)).toEqual(["CPU (1 thread)", "CPU (1 thread, JavaScript binding)"]);
});
