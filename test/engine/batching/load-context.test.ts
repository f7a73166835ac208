/** Models whose layers choose positions: in contexts in which all would be chosen, the choice is removed at load. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { systemLoop } from "../../../src/engine/batching/event-loop.ts";
import { loadEngine } from "../../../src/engine/batching/load.ts";
import { mapFile } from "../../../src/engine/formats/files/map.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../src/engine/formats/files/write.ts";
import type { Backend, Program } from "../../../src/engine/program/backend.ts";
import { withoutChoices } from "../../../src/engine/program/choices.ts";
import { makeModel, TOKENS } from "../architectures/models.ts";

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-context-"))));
afterAll(() => rm(folder, { recursive: true }));

const OPTIONS = { threads: 1, precise: true, cacheDir: undefined };

async function load(name: string, ctxLen: number | "auto", backend: Backend = cpuBackend) {
  const path = join(folder, `${name}.gguf`);
  await writeGguf(path, makeModel(name));
  const { engine, info } = await loadEngine(path, {
    ...OPTIONS,
    backend,
    loop: systemLoop(),
    open: mapFile,
    ctxLen,
    slots: 1,
    chunk: 16,
    emit: () => {},
    onEmbed: () => {},
  });
  await engine.close();
  return info;
}

test.each([
  ["deepseek32", 7],
  ["glm-dsa", 7],
  ["minimax-m3", 256], // 64 blocks of 4
])("%s: the cache has keys of the indexer only above %i positions", async (name, most) => {
  const [short, long] = [await load(name, most), await load(name, most + 1)];
  expect(long.bytes.kv / long.ctxLen).toBeGreaterThan(short.bytes.kv / short.ctxLen);
  expect(await load(name, "auto")).toMatchObject({ ctxLen: 512, ctxLenTrained: 512 });
});

test("the default context needs no choice of positions on a backend that lacks the choice", async () => {
  const lacking = { ...cpuBackend, missing: () => ["choosePositions"] };
  expect(await load("minimax-m3", "auto", lacking)).toMatchObject({ ctxLen: 256 });
  expect(await load("minimax-m3", 300, lacking)).toMatchObject({ ctxLen: 300 });
});

test.each(["deepseek32", "glm-dsa", "minimax-m3"])(
  "%s: logits are the same without a choice of all positions",
  async (name) => {
    const path = join(folder, `${name}.gguf`);
    await writeGguf(path, makeModel(name));
    const gguf = openGguf(path);
    const program = loadProgram(gguf);
    const [short, long] = [withoutChoices(program, 7), withoutChoices(program, 257)];
    expect(short.steps.some(({ op }) => op === "choosePositions")).toBe(false);
    expect(long.steps.filter(({ op }) => op === "choosePositions").length).toBeGreaterThan(0);
    const run = async (each: Program): Promise<number[]> => {
      const session = await cpuBackend.load(each, { ...OPTIONS, ctxLen: 7, slots: 1 });
      const logits = [...(await session.run([{ slot: 0, start: 0, tokens: TOKENS.subarray(0, 7), logits: "all" }]))];
      session.close();
      return logits;
    };
    expect(await run(short)).toEqual(await run(long));
    gguf.close();
  },
);
