/** Embeddings of models that generate: their final hidden states, from every backend, whole and in chunks. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import type { Backend, Program, StateRows } from "../../../src/engine/program/backend.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../src/engine/formats/files/write.ts";
import { startOnnx } from "../backends/child.ts";
import { cosine } from "./embed-on.ts";
import { makeModel, TOKENS } from "./models.ts";

const NAMES = ["llama", "gemma2", "qwen3moe", "granite", "olmo2"];
const onnx = startOnnx();
let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-states-"))));
afterAll(async () => {
  await onnx.stop();
  await rm(folder, { recursive: true });
});

async function withProgram<T>(name: string, use: (program: Program) => Promise<T>): Promise<T> {
  const path = join(folder, `${name}.gguf`);
  await writeGguf(path, makeModel(name));
  const gguf = openGguf(path);
  try {
    return await use(loadProgram(gguf));
  } finally {
    gguf.close();
  }
}

const rows = (start: number, end: number, states: StateRows["states"]): StateRows => ({
  slot: 1,
  start,
  tokens: TOKENS.subarray(start, end),
  states,
});

/** States of all tokens at once, of all in chunks, and of the last alone; and the logits after them. */
async function statesOn(backend: Backend, program: Program, precise: boolean) {
  const load = { ctxLen: 64, slots: 2, precise, threads: 1, cacheDir: undefined };
  const session = await backend.load(program, load);
  const whole = (await session.states([rows(0, TOKENS.length, "all")])).slice();
  const chunks = [(await session.states([rows(0, 10, "all")])).slice()];
  chunks.push((await session.states([rows(10, TOKENS.length, "all")])).slice());
  const last = (await session.states([rows(0, TOKENS.length, "last")])).slice();
  const none = await session.states([rows(0, 10, "none")]);
  expect(none.length).toBe(0);
  const logits = await session.run([{ slot: 1, start: 10, tokens: TOKENS.subarray(10), logits: "last" }]);
  const result = {
    whole,
    joined: Float32Array.from(chunks.flatMap((part) => [...part])),
    last,
    logits: logits.slice(),
  };
  session.close();
  return result;
}

for (const name of NAMES) {
  test(`${name}: hidden states and logits agree with the reference, whole and in chunks`, async () => {
    await withProgram(name, async (program) => {
      const reference = await statesOn(cpuBackend, program, true);
      const { dim } = program.states;
      expect(reference.whole.length).toBe(TOKENS.length * dim);
      expect(reference.joined).toEqual(reference.whole);
      expect(reference.last).toEqual(reference.whole.slice(-dim));
      for (const precise of [true, false]) {
        const got = await statesOn(onnx.backend, program, precise);
        const least = precise ? 0.999999 : 0.99;
        for (const key of ["whole", "joined", "last", "logits"] as const) {
          expect([key, cosine(got[key], reference[key]) > least]).toEqual([key, true]);
        }
      }
    });
  });
}
