/** Models whose last layers are on a software adapter, and the others on the CPU backends. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import type { Backend, LoadOptions, Program, Rows, Session } from "../../../../src/engine/program/backend.ts";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import { layerCount, loadSplit } from "../../../../src/engine/program/split.ts";
import type { Gguf } from "../../../../src/engine/formats/gguf/gguf.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { writeGguf, type WriteModel } from "../../../../src/engine/formats/files/write.ts";
import { makeAdapter, quantizedTo, recordedAdapters } from "../../architectures/adapters.ts";
import { encoders, makeEncoder } from "../../architectures/encoders.ts";
import { makeModel, TOKENS, VOCAB } from "../../architectures/models.ts";
import { drawn } from "../../../seed.ts";
import { topKOf } from "../../text/sampling/top-k.ts";
import { startOnnx, type BackendChild } from "../child.ts";
import { nmse } from "../compare.ts";
import { encode, exercise, options } from "../exercise.ts";
import { sharedWebGpu } from "./shared.ts";

const NMSE_MAX = 1e-5;

let [gpu, onnx]: BackendChild[] = [];
let folder = "";
const open: Gguf[] = [];
beforeAll(async () => {
  gpu = await sharedWebGpu();
  onnx = startOnnx();
  folder = await mkdtemp(join(tmpdir(), "hearth-webgpu-split-"));
});
afterAll(async () => {
  for (const gguf of open) gguf.close();
  await onnx?.stop();
  await rm(folder, { recursive: true });
});

async function file(name: string, model: WriteModel): Promise<Gguf> {
  const path = join(folder, `${name}.gguf`);
  await writeGguf(path, model);
  const gguf = openGguf(path);
  open.push(gguf);
  return gguf;
}

async function withSession<T>(loading: Promise<Session>, use: (session: Session) => Promise<T>): Promise<T> {
  const session = await loading;
  const result = await use(session);
  session.close();
  return result;
}

/** Runs a program with its last `count` layers on the GPU. */
function split<T>(
  program: Program,
  { count, front = onnx!.backend, ...more }: { count: number; front?: Backend } & Partial<LoadOptions>,
  use: (session: Session) => Promise<T>,
): Promise<T> {
  return withSession(loadSplit(program, { ...options, ...more }, { front, back: gpu!.backend, count }), use);
}

/** A run draws some of them by its seed. */
const MODELS = ["llama", "qwen2", "qwen3", "gemma3", "llama-experts", "qwen3moe", "mistral3"];
/** The first layers of these leave values to the others. */
const LEAVING = ["rwkv7", "gemma3n"];

/** The output alone, half, all but the first layer. */
const counts = (program: Program): Set<number> => {
  const all = layerCount(program);
  return new Set([1, Math.ceil(all / 2), all - 1]);
};

describe("with the output, half or all but one of its layers on the GPU, a model gives the reference's numbers", () => {
  for (const name of [...drawn("models in two parts", MODELS, 2), ...drawn("models that leave values", LEAVING, 1)]) {
    test(
      name,
      async () => {
        const program = loadProgram(await file(name, makeModel(name)));
        const expected = await withSession(cpuBackend.load(program, options), exercise);
        const front = LEAVING.includes(name) ? cpuBackend : undefined; // ONNX Runtime has no kernels for them
        for (const count of counts(program)) {
          const got = await split(program, { count, ...(front && { front }) }, exercise);
          expect(nmse(got, expected), `the last ${count}`).toBeLessThan(NMSE_MAX);
        }
      },
      180_000,
    );
  }

  test("a quantized model, after layers on the reference and on ONNX Runtime", async () => {
    const model = makeModel("llama");
    const tensors = model.tensors.map((tensor) => quantizedTo("q4_0", tensor));
    const program = loadProgram(await file("q4_0", { ...model, tensors }));
    const expected = await withSession(cpuBackend.load(program, options), exercise);
    for (const front of [onnx!.backend, cpuBackend]) {
      const got = await split(program, { count: 2, front }, exercise);
      expect(nmse(got, expected)).toBeLessThan(NMSE_MAX);
    }
  }, 180_000);

  test("a model with an adapter", async () => {
    const base = await file("base", makeModel("qwen3"));
    const adapter = { ...recordedAdapters["qwen3"]!, targets: /blk/ }; // no kernel supports an adapter of a table
    const program = loadProgram(base, [await file("adapter", makeAdapter(makeModel("qwen3"), adapter))]);
    const expected = await withSession(cpuBackend.load(program, options), exercise);
    expect(nmse(await split(program, { count: 2 }, exercise), expected)).toBeLessThan(NMSE_MAX);
  }, 180_000);

  test("an encoder", async () => {
    const program = loadProgram(await file("bert", makeEncoder(encoders["bert-mean"])));
    const expected = await withSession(cpuBackend.load(program, options), encode);
    expect(nmse(await split(program, { count: 1 }, encode), expected)).toBeLessThan(NMSE_MAX);
  }, 180_000);
});

test("more rows than the GPU takes at once are handed to it in one run, each with its own values", async () => {
  const program = loadProgram(await file("chunks", makeModel("llama")));
  const tokens = Int32Array.from({ length: 530 }, (_, i) => (i * 31 + 5) % 64);
  const long = { ...options, ctxLen: 540, slots: 2 };
  const run = async (session: Session): Promise<Float32Array> => {
    const beside = { slot: 1, start: 0, tokens: tokens.subarray(9, 12), logits: "all" } as const;
    return (await session.run([beside, { slot: 0, start: 0, tokens, logits: "all" }])).slice(-64 * 20);
  };
  const expected = await withSession(cpuBackend.load(program, long), run);
  for (const count of [1, 2]) {
    expect(nmse(await split(program, { ...long, count }, run), expected)).toBeLessThan(NMSE_MAX);
  }
}, 180_000);

test("a prompt in parts, of the layers on either side of the cut, has the bits of a whole run", async () => {
  const program = loadProgram(await file("parts", makeModel("qwen3")));
  const rows = (slot: number, start: number, end: number): Rows => {
    return { slot, start, tokens: TOKENS.slice(start, end), logits: "last" };
  };
  for (const [count, logits] of [
    [2, "last"],
    [1, "last"],
    [1, "none"],
  ] as const) {
    await split(program, { count, front: cpuBackend }, async (session) => {
      await session.run([rows(1, 0, 3)]);
      const run = session.slices!.start({ ...rows(0, 0, 18), logits });
      expect(await run.next(1e12)).toBeUndefined();
      const step = (await session.run([rows(1, 3, 4)])).slice();
      const done = (await run.next(1e12))!.slice();
      expect(done.length).toBe(logits === "last" ? VOCAB : 0);
      const next = (await session.run([rows(0, 18, 19)])).slice();
      expect(await session.run([{ ...rows(2, 0, 18), logits }])).toEqual(done);
      expect(await session.run([rows(2, 18, 19)])).toEqual(next);
      expect(await session.run([rows(1, 3, 4)])).toEqual(step);
    });
  }
}, 180_000);

test("candidates are chosen on the GPU for the rows that request them", async () => {
  const program = loadProgram(await file("candidates", makeModel("llama")));
  const rows = (slot: number, count: number) => ({ slot, start: 0, tokens: TOKENS.subarray(slot, slot + count) });
  const batch = [
    { ...rows(0, 6), logits: "last", request: { k: 4, masked: Int32Array.of(9, 1) } },
    { ...rows(1, 3), logits: "none" },
    { ...rows(2, 4), logits: "last" },
  ] as const;
  const logits = (await withSession(cpuBackend.load(program, options), (each) => each.run(batch))).slice();
  const expected = topKOf(logits.subarray(0, VOCAB), batch[0].request);
  for (const count of [1, 2]) {
    const got = await split(program, { count }, (session) => session.topK!.run(batch));
    expect(got.topK.map(({ ids }) => ids.toSorted())).toEqual([expected.ids.toSorted()]);
    expect(nmse(got.logits, logits.subarray(VOCAB))).toBeLessThan(NMSE_MAX);
  }
}, 180_000);
