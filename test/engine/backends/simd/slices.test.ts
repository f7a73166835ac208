/** Runs in parts: the same numbers as whole runs, whatever other slots do in between; parts end in time. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import type { Program, Rows, Session } from "../../../../src/engine/program/backend.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../../src/engine/formats/files/write.ts";
import { memoryOf } from "../../../conformance/memory-cases.ts";
import { makeModel } from "../../architectures/models.ts";
import { differences } from "../compare.ts";
import { hybridProgram, VOCAB } from "../hybrid.ts";
import { simdLevels, twoLevels } from "./levels.ts";

const EMBEDDED = resolve(import.meta.dir, "../../../../models/hearth/hearth.gguf");
const options = { ctxLen: 400, slots: 3, precise: false, threads: 2, cacheDir: undefined };

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-slices-"))));
afterAll(() => rm(folder, { recursive: true }));

function rows(slot: number, start: number, count: number, logits: Rows["logits"] = "last"): Rows {
  const tokens = Int32Array.from({ length: count }, (_, i) => (slot * 17 + (start + i) * 5 + 3) % VOCAB);
  return { slot, start, tokens, logits };
}

/** Every record by itself, with a step of another slot in between. */
async function interleaved(session: Session, prompt: Rows, at: { next: number }): Promise<[Float32Array, number[]]> {
  const run = session.slices!.start(prompt);
  const steps: number[] = [];
  for (;;) {
    const done = await run.next(0);
    if (done) return [done.slice(), steps];
    const logits = await session.run([rows(1, at.next++, 1), rows(2, at.next, 1)]);
    steps.push(logits[3]!, logits.at(-1)!);
  }
}

async function check(session: Session): Promise<void> {
  for (const slot of [1, 2]) await session.run([rows(slot, 0, 10)]);
  await session.run([rows(2, 10, 1)]);
  const at = { next: 10 };
  const [none, before] = await interleaved(session, rows(0, 0, 60, "none"), at);
  expect(none.length).toBe(0);
  const [last, after] = await interleaved(session, rows(0, 60, 33), at);
  const next = (await session.run([rows(0, 93, 1)])).slice();
  expect(before.length).toBeGreaterThan(8);
  const [all] = await interleaved(session, rows(0, 0, 77, "all"), { next: at.next });
  expect(all.length).toBe(77 * last.length);
  // the same without parts
  expect(differences(await session.run([rows(0, 0, 77, "all")]), all)).toBe(0);
  await session.run([rows(0, 0, 60, "none")]);
  expect(differences(await session.run([rows(0, 60, 33)]), last)).toBe(0);
  expect(differences(await session.run([rows(0, 93, 1)]), next)).toBe(0);
  for (const slot of [1, 2]) await session.run([rows(slot, 0, 10)]);
  await session.run([rows(2, 10, 1)]);
  const steps: number[] = [];
  for (let i = 10; i < at.next; i++) {
    const logits = await session.run([rows(1, i, 1), rows(2, i + 1, 1)]);
    steps.push(logits[3]!, logits.at(-1)!);
  }
  expect(steps).toEqual([...before, ...after]);
}

describe.each(twoLevels("slices on the CPU", simdLevels))("$level", ({ backend }) => {
  test.each(["hearth", "gemma3", "qwen3moe", "granitemoe"])(
    "%s: a run in parts gives the bits of a whole run",
    async (name) => {
      const path = name === "hearth" ? EMBEDDED : join(folder, `${name}.gguf`);
      if (name !== "hearth") await writeGguf(path, makeModel(name));
      const gguf = openGguf(path);
      const session = await backend.load(loadProgram(gguf), options);
      await check(session);
      session.close();
      gguf.close();
    },
  );

  test("a hybrid model: a run in parts gives the bits of a whole run", async () => {
    const session = await backend.load(hybridProgram(), options);
    await check(session);
    session.close();
  });

  test("memories are computed in parts or copied from another slot, and again after an abandoned run", async () => {
    const path = join(folder, "mllama.gguf");
    await writeGguf(path, makeModel("mllama"));
    const gguf = openGguf(path);
    const [image, other] = [memoryOf("image", 500, 64), memoryOf("other", 5, 64)];
    const session = await backend.load(loadProgram(gguf), options);
    const beside = (start: number): Rows => ({ ...rows(1, start, 1), memory: other });
    await session.run([{ ...rows(1, 0, 10), memory: other }]);
    const expected = (await session.run([beside(10)])).slice();
    const prompt: Rows = { ...rows(0, 0, 40), memory: image };
    const given = session.slices!.start(prompt);
    for (let i = 0; i < 3; i++) expect(given.next(0)).toBeUndefined();
    const run = session.slices!.start(prompt);
    for (let part = 0; part < 4; part++) {
      expect(run.next(0)).toBeUndefined();
      expect(run.longestNs).toBe(0); // no record of the prompt yet
      expect(differences(await session.run([beside(10)]), expected)).toBe(0);
    }
    const inParts = (await run.next(1e12))!.slice();
    const again = session.slices!.start({ ...prompt, slot: 2 });
    expect([again.next(0), again.longestNs]).toEqual([undefined, 0]); // a copy of the keys and values in slot 0
    await again.next(0);
    expect(again.longestNs).toBeGreaterThan(0); // a record of the prompt
    expect(differences((await again.next(1e12))!, inParts)).toBe(0);
    await session.run([{ ...prompt, memory: other }]);
    await session.run([{ ...prompt, slot: 2, memory: other }]);
    expect(differences(await session.run([prompt]), inParts)).toBe(0);
    session.close();
    gguf.close();
  });

  test("an abandoned run leaves its slot with the tokens before it, or empty if the model has states", async () => {
    const load = (program: Program): Promise<Session> => backend.load(program, options);
    const gguf = openGguf(EMBEDDED);
    for (const program of [loadProgram(gguf), hybridProgram()]) {
      const session = await load(program);
      const expected = (await session.run([rows(0, 0, 30)])).slice();
      await session.run([rows(0, 0, 20)]);
      const run = session.slices!.start(rows(0, 20, 40));
      run.next(0);
      run.next(0);
      const start = session.checkpoints ? 0 : 20;
      expect(differences(await session.run([rows(0, start, 30 - start)]), expected)).toBe(0);
      session.close();
    }
    gguf.close();
  });

  test("a run within its budget takes one call, and a run of too many rows is refused", async () => {
    const session = await backend.load(hybridProgram(), options);
    const run = session.slices!.start(rows(0, 0, 50));
    expect(run.next(1e12)).toBeDefined();
    expect(run.longestNs).toBeGreaterThan(0);
    expect(() => session.slices!.start(rows(1, 0, session.slices!.rowsMax + 1))).toThrow("more than 256 rows");
    session.close();
  });
});
