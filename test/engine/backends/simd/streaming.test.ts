/** Models that do not fit in memory: experts are read while a pass runs, and change no bit of any result. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openSync } from "node:fs";
import { copyFile, mkdtemp, rm, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import { makeSimdBackend } from "../../../../src/engine/backends/host/simd.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { writeGguf, type WriteModel } from "../../../../src/engine/formats/files/write.ts";
import type { Rows, Session } from "../../../../src/engine/program/backend.ts";
import { makeAdapter, quantizedTo } from "../../architectures/adapters.ts";
import { makeOutline, readOutlines } from "../../architectures/outlines.ts";
import { makeModel, VOCAB } from "../../architectures/models.ts";
import { differences, joined } from "../compare.ts";

const OPTIONS = { ctxLen: 128, slots: 3, precise: false, threads: 2, cacheDir: undefined };

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-streaming-"))));
afterAll(() => rm(folder, { recursive: true }));

async function write(model: WriteModel): Promise<string> {
  const path = join(folder, `${crypto.randomUUID()}.gguf`);
  await writeGguf(path, model);
  return path;
}

function rows(slot: number, start: number, count: number): Rows {
  const tokens = Int32Array.from({ length: count }, (_, i) => (slot * 17 + (start + i) * 5 + 3) % VOCAB);
  return { slot, start, tokens, logits: "last" };
}

/** Prompts, steps of several sequences, both together, and a run in parts with a step between them. */
async function answersOf(session: Session): Promise<Float32Array> {
  const answers: Float32Array[] = [];
  const run = async (...batch: Rows[]): Promise<void> => void answers.push((await session.run(batch)).slice());
  await run(rows(0, 0, 20), rows(1, 0, 9));
  for (let i = 0; i < 4; i++) await run(rows(0, 20 + i, 1), rows(1, 9 + i, 1));
  await run(rows(0, 24, 1), rows(2, 0, 30));
  const parts = session.slices!.start(rows(2, 30, 12));
  for (let i = 25; ; i++) {
    const done = await parts.next(0);
    if (done) answers.push(done.slice());
    if (done) break;
    await run(rows(0, i, 1));
  }
  answers.push((await session.states([{ ...rows(1, 13, 5), states: "all" }])).slice());
  return joined(answers);
}

/** @param fits all weights fit; otherwise only half of the experts', or three quarters of others. */
async function answersWith(path: string, adapters: readonly string[], fits: boolean) {
  const files = [path, ...adapters].map((each) => openGguf(each));
  const [gguf, ...others] = files as [(typeof files)[0]];
  const program = loadProgram(gguf, others);
  const tensors = [...gguf.tensors.values()];
  const isMixture = tensors.some(({ name }) => name.includes("_exps.weight"));
  const shareOf = (name: string): number => (name.includes("_exps.weight") ? 1 / 2 : isMixture ? 1 : 3 / 4);
  const half = tensors.reduce((sum, { name, byteLength }) => sum + shareOf(name) * byteLength, 0);
  const weightBytes = fits ? undefined : half;
  const session = await makeSimdBackend({ weightBytes }).load(program, OPTIONS);
  try {
    const answers = await answersOf(session);
    return { answers, counts: session.streamed?.counts(), weights: session.bytes.weights };
  } finally {
    session.close();
    for (const file of files) file.close();
  }
}

const ONE_LAYER = "experts with factors, and one tensor for two of their matrices";
const outline = (name: string): WriteModel => makeOutline(name, readOutlines().get(name)!);
const inBlocks = (model: WriteModel): WriteModel => ({
  ...model,
  tensors: model.tensors.map((tensor) => quantizedTo("q8_0", tensor)),
});

const cases: readonly { name: string; model: () => WriteModel; adapter?: true }[] = [
  { name: "experts whose pages lie alike", model: () => makeModel("llama-experts") },
  { name: "experts that begin anywhere in a page", model: () => inBlocks(makeModel("llama-experts")) },
  { name: "experts with biases", model: () => makeModel("gpt-oss") },
  { name: ONE_LAYER, model: () => outline("cohere2moe-moe") },
  { name: "experts that an adapter changes", model: () => makeModel("llama-experts"), adapter: true },
];

if (process.platform === "linux") {
  for (const { name, model, adapter } of cases) {
    test(`results have the same bits with few experts in memory: ${name}`, async () => {
      const made = model();
      const path = await write(made);
      const adapters = adapter ? [await write(makeAdapter(made, { rank: 4, alpha: 8, seed: 1 }))] : [];
      const whole = await answersWith(path, adapters, true);
      const few = await answersWith(path, adapters, false);
      expect(differences(few.answers, whole.answers)).toBe(0);
      expect(whole.counts).toBeUndefined();
      expect(few.weights).toBe(whole.weights);
      const { hits, misses, bytes } = few.counts!;
      expect(hits).toBeGreaterThan(0);
      expect(misses).toBeGreaterThanOrEqual(8); // each of four experts, in two records
      if (name !== ONE_LAYER) expect(misses).toBeGreaterThan(16); // two layers: experts were read again
      expect(bytes).toBeGreaterThanOrEqual(misses * 4096);
    });
  }
}

const DENSE = ["llama", "gemma3", "phi3", "llama-tied-factors", "qwen35"];
if (process.platform === "linux") {
  for (const name of DENSE) {
    test(`results have the same bits with few matrices in memory: ${name}`, async () => {
      const path = await write(makeModel(name));
      const whole = await answersWith(path, [], true);
      const few = await answersWith(path, [], false);
      expect(differences(few.answers, whole.answers)).toBe(0);
      expect(few.counts).toMatchObject({ hits: 0, misses: 0 });
      expect(few.counts!.bytes).toBeGreaterThan(10 * few.weights); // more than once in each of its passes
    });
  }
}

test("weights that cannot be read fail the run, and name the file", async () => {
  const path = await write(makeModel("llama-experts"));
  const gguf = openGguf(path);
  const program = loadProgram(gguf);
  const beyond = (name: string) => ({ ...gguf.place!(name)!, offset: 2 ** 30 });
  const cut = { ...program, weights: { ...gguf, place: beyond } };
  const backend = makeSimdBackend({ weightBytes: gguf.fileBytes / 2 });
  const load = backend.load(cut, OPTIONS).then((session) => session.run([rows(0, 0, 20)]).finally(session.close));
  expect(await load.catch((error: unknown) => error)).toMatchObject({
    code: "runner",
    message: expect.stringMatching(/\.gguf: weights cannot be read: bytes \d+ to \d+: the file ended after 0 bytes/),
  });
  gguf.close();
});

test.each(["llama-experts", "llama"])("after a failed read, the next run of %s reads again", async (name) => {
  const path = await write(inBlocks(makeModel(name)));
  const copy = `${path}.copy`; // the file that is mapped stays whole
  await copyFile(path, copy);
  const gguf = openGguf(path);
  const { file } = gguf.place!("output_norm.weight")!;
  const source = { ...file, openDirect: () => openSync(copy, "r") };
  const place = (tensor: string) => ({ ...gguf.place!(tensor)!, file: source });
  const program = loadProgram(gguf);
  const weightBytes = (gguf.fileBytes * (name === "llama" ? 3 : 2)) / 4;
  const backend = makeSimdBackend({ weightBytes });
  const session = await backend.load({ ...program, weights: { ...gguf, place } }, OPTIONS);
  const whole = (await session.run([rows(0, 0, 20)])).slice();
  expect(session.streamed).toBeDefined();
  await truncate(copy, 0);
  await expect(session.run([rows(0, 0, 20)])).rejects.toThrow("weights cannot be read");
  await copyFile(path, copy); // into the same file
  expect(differences(await session.run([rows(0, 0, 20)]), whole)).toBe(0);
  session.close();
  gguf.close();
});
