/** Drafted rows: each has the same bits as alone, whatever the other rows are. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import type { Rows, Session } from "../../../../src/engine/program/backend.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../../src/engine/formats/files/write.ts";
import { makeModel, VOCAB } from "../../architectures/models.ts";
import { differences, joined } from "../compare.ts";
import { simdLevels, twoLevels } from "./levels.ts";

const CTX_LEN = 320;
const SLOTS = 3;
const EMBEDDED = resolve(import.meta.dir, "../../../../models/hearth/hearth.gguf");

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-drafted-"))));
afterAll(() => rm(folder, { recursive: true }));

const options = { ctxLen: CTX_LEN, slots: SLOTS, precise: false, threads: 2, cacheDir: undefined };

/** `count` tokens of a slot's own text. */
function rows(slot: number, start: number, count: number, more: Partial<Rows> = {}): Rows {
  const tokens = Int32Array.from({ length: count }, (_, i) => (slot * 17 + (start + i) * 5 + 3) % VOCAB);
  return { slot, start, tokens, logits: "last", ...more };
}

const DRAFTED = { logits: "all", drafted: true } as const;

async function oneByOne(session: Session, slot: number, start: number, count: number): Promise<Float32Array> {
  const all: Float32Array[] = [];
  for (let i = 0; i < count; i++) all.push((await session.run([rows(slot, start + i, 1)])).slice());
  return joined(all);
}

describe.each(twoLevels("drafted on the CPU", simdLevels))("$level", ({ backend }) => {
  test.each([
    ...["hearth", "llama", "gemma3", "qwen3moe", "granitemoe"].map((name) => ({ name, small: false })),
    ...["hearth", "granitemoe"].map((name) => ({ name, small: true })),
  ])("$name, small: $small: drafted rows have the bits of single rows", async ({ name, small }) => {
    const path = name === "hearth" ? EMBEDDED : join(folder, `${name}.gguf`);
    if (name !== "hearth") await writeGguf(path, makeModel(name));
    const gguf = openGguf(path);
    const program = loadProgram(gguf);
    const session = await backend.load(program, { ...options, small });
    const prompt = name === "hearth" ? 250 : 20; // beyond a block of attention, if the model has room for it
    for (const slot of [0, 1]) await session.run([rows(slot, 0, prompt + slot)]);
    for (const count of [2, 3, 5, 8, 9, 15]) {
      const expected = await oneByOne(session, 0, prompt, count);
      const beside = [rows(1, prompt + 1, 1), rows(2, 0, 7, { logits: "none" })];
      for (const batch of [
        [rows(0, prompt, count, DRAFTED)],
        [...beside, rows(0, prompt, count, DRAFTED)],
        [rows(0, prompt, count, DRAFTED), rows(1, prompt + 1, 4, DRAFTED)],
      ]) {
        const logits = await session.run(batch);
        const at = batch.findIndex(({ slot }) => slot === 0) > 0 ? program.shape.vocabSize : 0;
        const own = logits.slice(at, at + expected.length);
        expect(differences(own, expected), `${count} rows in a batch of ${batch.length}`).toBe(0);
      }
    }
    // drafts leave the same state as single steps
    const after = rows(0, prompt + 15, 1);
    const drafted = (await session.run([after])).slice();
    await oneByOne(session, 0, prompt, 15);
    expect(differences(await session.run([after]), drafted)).toBe(0);
    session.close();
    gguf.close();
  });

  test("a rejected draft changes no later result", async () => {
    const gguf = openGguf(EMBEDDED);
    const session = await backend.load(loadProgram(gguf), options);
    await session.run([rows(0, 0, 20)]);
    const expected = await oneByOne(session, 0, 20, 4);
    await session.run([rows(0, 0, 20)]);
    await session.run([rows(0, 20, 9, { ...DRAFTED, tokens: new Int32Array(9).fill(5) })]);
    expect(differences(await oneByOne(session, 0, 20, 4), expected)).toBe(0);
    session.close();
    gguf.close();
  });
});
