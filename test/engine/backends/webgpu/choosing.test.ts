/** Models whose layers choose positions, in contexts where they do: against the reference, on a software adapter. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../../src/engine/formats/files/write.ts";
import type { Rows } from "../../../../src/engine/program/backend.ts";
import { makeModel, TOKENS } from "../../architectures/models.ts";
import type { BackendChild } from "../child.ts";
import { nmse } from "../compare.ts";
import { exercise, options } from "../exercise.ts";
import { sharedWebGpu } from "./shared.ts";

const NMSE_MAX = 1e-8;

let gpu: BackendChild;
let folder = "";
beforeAll(async () => {
  gpu = await sharedWebGpu();
  folder = await mkdtemp(join(tmpdir(), "hearth-webgpu-choosing-"));
});
afterAll(() => rm(folder, { recursive: true }));

test.each([
  ["deepseek32", 7],
  ["glm-dsa", 7],
  ["minimax-m3", 2], // blocks of 4
] as const)(
  "%s: rows that choose %i blocks give the reference's results, and the same bits beside a copy of blocks",
  async (name, count) => {
    const path = join(folder, `${name}.gguf`);
    const { metadata, ...model } = makeModel(name);
    const key = `${name}.attention.indexer.top_k`;
    expect(metadata[key]).toBeDefined();
    await writeGguf(path, { ...model, metadata: { ...metadata, [key]: { u32: count } } });
    const gguf = openGguf(path);
    const program = loadProgram(gguf);
    expect(program.choosesAbove).toBeLessThan(9);
    const reference = await cpuBackend.load(program, options);
    const session = await gpu.backend.load(program, options);
    expect(session.gpuLayers?.count).toBe(session.gpuLayers?.all);
    expect(nmse(await exercise(session), await exercise(reference))).toBeLessThan(NMSE_MAX);
    reference.close();

    const rows = (slot: number, start: number, end: number): Rows => {
      return { slot, start, tokens: TOKENS.subarray(start, end), logits: "all" };
    };
    await session.run([rows(0, 0, 18)]);
    const blocks = session.blocks!;
    await blocks.write(1, { first: 0, count: 18, bytes: await blocks.read(0, 0, 18) });
    const alone = (await session.run([rows(0, 18, 19)])).slice();
    const both = await session.run([rows(1, 18, 19), rows(0, 19, 20)]);
    expect(both.subarray(0, alone.length)).toEqual(alone);
    session.close();
    gguf.close();
  },
  120_000,
);
