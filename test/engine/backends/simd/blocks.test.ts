/** Blocks of keys and values, copied from one slot to another: continuations are bit-identical. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import type { Program, Session } from "../../../../src/engine/program/backend.ts";
import type { KvBlocks } from "../../../../src/engine/program/kept-slots.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../../src/engine/formats/files/write.ts";
import { makeModel } from "../../architectures/models.ts";
import { differences } from "../compare.ts";
import { compressedProgram } from "../compressed.ts";
import { hybridProgram } from "../hybrid.ts";
import { simdLevels, twoLevels } from "./levels.ts";

const CTX_LEN = 208; // whole tiles, no whole blocks
const EMBEDDED = resolve(import.meta.dir, "../../../../models/hearth/hearth.gguf");
const options = { ctxLen: CTX_LEN, slots: 3, precise: false, threads: 2, cacheDir: undefined };

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-blocks-"))));
afterAll(() => rm(folder, { recursive: true }));

/** Ids that all programs here have. */
const VOCAB = 37;
const tokensOf = (text: number, start: number, count: number): Int32Array =>
  Int32Array.from({ length: count }, (_, i) => (text * 7 + (start + i) * 5 + 3) % VOCAB);

async function run(session: Session, slot: number, text: number, start: number, count: number): Promise<Float32Array> {
  const [rows] = [{ slot, start, tokens: tokensOf(text, start, count), logits: "last" as const }];
  return (await session.run([rows])).slice();
}

/** Moves the first `length` tokens of one slot to another, as bytes. */
async function move(
  session: Session,
  { from, to, length }: { from: number; to: number; length: number },
): Promise<void> {
  const blocks = session.blocks as KvBlocks; // this test is about blocks
  for (let first = 0; first < length; first += blocks.length) {
    const count = Math.min(blocks.length, length - first);
    const bytes = (await blocks.read(from, first, count)).slice();
    expect(bytes.length).toBe(blocks.bytesOf(count));
    blocks.write(to, { first, count, bytes });
  }
  if (!session.checkpoints) return;
  const packed = (await blocks.checkpoints!.pack(await session.checkpoints.save(from, length))).slice();
  expect(blocks.checkpoints!.unpack(length, packed.subarray(1))).toBeUndefined();
  session.checkpoints.restore(to, blocks.checkpoints!.unpack(length, packed)!);
}

async function check(program: Program, load: (program: Program) => Promise<Session>): Promise<void> {
  for (const length of [1, 63, 64, 130, CTX_LEN - 3]) {
    const session = await load(program);
    await run(session, 0, 1, 0, length);
    await run(session, 2, 2, 0, 150); // another text's blocks
    const other = await run(session, 1, 3, 0, 9);
    await move(session, { from: 0, to: 2, length });
    expect(differences(await run(session, 2, 1, length, 2), await run(session, 0, 1, length, 2)), `${length}`).toBe(0);
    expect(differences(await run(session, 1, 3, 0, 9), other)).toBe(0);
    session.close();
  }
}

describe.each(twoLevels("blocks on the CPU", simdLevels))("$level", ({ backend }) => {
  const load = (program: Program): Promise<Session> => backend.load(program, options);

  test.each(["hearth", "gemma3", "mistral3"])(
    "a prefix of %s that is copied as blocks continues with the same bits",
    async (name) => {
      const path = name === "hearth" ? EMBEDDED : join(folder, `${name}.gguf`);
      if (name !== "hearth") await writeGguf(path, makeModel(name));
      const gguf = openGguf(path);
      await check(loadProgram(gguf), load);
      gguf.close();
    },
  );

  test("a prefix of a hybrid model that is copied with its states continues with the same bits", () =>
    check(hybridProgram(), load));

  test("a prefix of compressed blocks that is copied continues with the same bits", () =>
    check(compressedProgram(), load));

  test("a prefix of keys and values in 4 bits that is copied continues with the same bits", () =>
    check(hybridProgram(), (program) => backend.load(program, { ...options, kvType: "q4_0" })));

  test("the layout differs between precise and default mode, and blocks out of range are refused", async () => {
    const program = hybridProgram();
    const layouts: string[] = [];
    for (const precise of [false, true]) {
      const session = await backend.load(program, { ...options, precise });
      layouts.push(session.blocks!.layout);
      session.close();
    }
    expect(new Set(layouts).size).toBe(2);
    const again = await load(program);
    expect(again.blocks!.layout).toBe(layouts[0]!);
    expect(() => again.blocks!.read(0, 32, 8)).toThrow("begins at 32");
    expect(() => again.blocks!.read(3, 0, 8)).toThrow("slot 3");
    expect(() => again.blocks!.write(0, { first: 0, count: 8, bytes: new Uint8Array(7) })).toThrow("7 bytes");
    again.close();
  });
});
