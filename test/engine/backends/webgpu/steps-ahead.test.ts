/** Decode steps that the device begins before the host reads the tokens of the step before. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../../src/engine/formats/files/write.ts";
import type { Backend, Session, TopKRows } from "../../../../src/engine/program/backend.ts";
import { makeModel, VOCAB } from "../../architectures/models.ts";
import { answersOf, type Ask } from "../../batching/answers-of.ts";
import type { BackendChild } from "../child.ts";
import { sharedWebGpu } from "./shared.ts";

setDefaultTimeout(120_000);

const CTX_LEN = 48;

let gpu: BackendChild;
let folder = "";
beforeAll(async () => {
  gpu = await sharedWebGpu();
  folder = await mkdtemp(join(tmpdir(), "hearth-steps-ahead-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function fileOf(name: string): Promise<string> {
  const file = join(folder, `${name}.gguf`);
  await writeGguf(file, makeModel(name));
  return file;
}

/** @param poisoned a token whose embedding is NaN */
async function load(name: string, poisoned?: number): Promise<Session> {
  const gguf = openGguf(await fileOf(name));
  const options = { ctxLen: CTX_LEN, slots: 2, precise: false, threads: 1, cacheDir: undefined };
  const program = loadProgram(gguf);
  const { weights } = program;
  const read = (tensor: string): Uint8Array => {
    const bytes = weights.read(tensor);
    if (tensor !== "token_embd.weight" || poisoned === undefined) return bytes;
    const each = bytes.length / VOCAB;
    return bytes.slice().fill(255, poisoned * each, (poisoned + 1) * each);
  };
  return gpu.backend.load({ ...program, weights: { path: weights.path, read } }, options).finally(() => gguf.close());
}

const request = { k: 1, masked: new Int32Array(0) };
const rowOf = (slot: number, start: number, token: number): TopKRows => {
  return { slot, start, tokens: Int32Array.of(token), logits: "last", request };
};
const prompt = (slot: number): Int32Array => Int32Array.from({ length: 9 }, (_, i) => (7 * i + slot) % VOCAB);

/** Continues slots with the tokens that the device chooses; returns them. */
async function decode(session: Session, slots: readonly number[], from: number, tokens: number[], count: number) {
  const said: number[][] = [];
  let next = tokens;
  for (let at = from; at < from + count; at++) {
    const { topK } = await session.topK!.run(slots.map((slot, i) => rowOf(slot, at, next[i]!)));
    next = topK.map(({ ids }) => ids[0]!);
    said.push(next);
  }
  return said;
}

const begin = (session: Session, slot: number): Promise<unknown> =>
  session.run([{ slot, start: 0, tokens: prompt(slot), logits: "none" }]);

test("each step is submitted before the one before is read, from the third step to the end of the context", async () => {
  const session = await load("llama");
  await begin(session, 0);
  const before = await gpu.tally();
  await decode(session, [0], 9, [5], 20);
  const after = await gpu.tally();
  expect(after.readsBehind - before.readsBehind).toBe(20 - 2);
  expect(after.submits - before.submits).toBe(20 + 1); // the last step is not used yet
  await decode(session, [0], 29, [5], CTX_LEN - 29); // another token than the chosen one
  const end = await gpu.tally();
  expect(end.readsBehind - after.readsBehind).toBe(CTX_LEN - 29 - 2 - 1);
  expect(end.submits - after.submits).toBe(CTX_LEN - 29);
  session.close();
});

test("a run after an unused step ahead gives the same results as without that step", async () => {
  const session = await load("llama");
  const fresh = await load("llama");
  const logitsOf = async (each: Session, ...rows: TopKRows[]): Promise<number[]> =>
    (await each.topK!.run(rows)).topK.flatMap(({ ids, logits }) => [...ids, ...logits]);
  /** Runs after 8 steps of both slots. `said`: the tokens that the last one chose. */
  const cases: ((each: Session, said: readonly number[]) => Promise<ArrayLike<number>>)[] = [
    (each, said) => logitsOf(each, rowOf(0, 17, (said[0]! + 1) % VOCAB), rowOf(1, 17, said[1]!)),
    (each, said) => logitsOf(each, rowOf(0, 13, said[0]!), rowOf(1, 17, said[1]!)),
    (each, said) => logitsOf(each, rowOf(1, 17, said[1]!)),
    (each) => each.run([{ slot: 0, start: 12, tokens: prompt(1), logits: "last" }]),
    async (each, said) => {
      await each.copy({ from: 0, to: 1, length: 17 });
      return logitsOf(each, rowOf(0, 17, said[0]!), rowOf(1, 17, said[1]!));
    },
    async (each, said) => {
      each.shift(0, { keep: 2, discard: 4, length: 17 });
      return logitsOf(each, rowOf(0, 13, said[0]!));
    },
  ];
  for (const after of cases) {
    for (const each of [session, fresh]) for (const slot of [0, 1]) await begin(each, slot);
    const { readsBehind } = await gpu.tally();
    const said = await decode(session, [0, 1], 9, [5, 6], 8);
    expect((await gpu.tally()).readsBehind - readsBehind).toBe(6);
    for (const [i, tokens] of [[5, 6], ...said.slice(0, -1)].entries()) {
      const rows = tokens.map((token, slot) => ({ ...rowOf(slot, 9 + i, token), request: undefined }));
      const all = await fresh.run(rows); // the device does not continue a step with all logits
      const chosen = [0, 1].map((row) => best(all.subarray(row * VOCAB, (row + 1) * VOCAB)));
      expect(chosen).toEqual(said[i]!);
    }
    expect(await after(session, said.at(-1)!)).toEqual(await after(fresh, said.at(-1)!));
  }
  session.close();
  fresh.close();
});

const best = (logits: Float32Array): number => logits.reduce((at, value, i) => (value > logits[at]! ? i : at), 0);

test("an error of a step that ran ahead names the step that wrote NaN", async () => {
  const session = await load("llama");
  await begin(session, 0);
  const said = (await decode(session, [0], 9, [5], 16)).flat();
  session.close();
  const [at, bad] = [...said.entries()].find(([i, id]) => i > 3 && said.indexOf(id) === i && !prompt(0).includes(id))!;
  const poisoned = await load("llama", bad);
  await begin(poisoned, 0);
  const { readsBehind } = await gpu.tally();
  expect((await decode(poisoned, [0], 9, [5], at + 1)).flat()).toEqual(said.slice(0, at + 1));
  expect((await gpu.tally()).readsBehind - readsBehind).toBe(at - 1);
  const run = decode(poisoned, [0], 10 + at, [bad], 1);
  await expect(run).rejects.toThrow(/step 0 .embed with 'token_embd.weight'.: expected numbers, got NaN at row 0/);
  poisoned.close();
});

test("slots that continue only from checkpoints run no steps ahead", async () => {
  const session = await load("qwen35");
  await begin(session, 0);
  const { readsBehind } = await gpu.tally();
  await decode(session, [0], 9, [5], 6);
  expect((await gpu.tally()).readsBehind).toBe(readsBehind);
  session.close();
});

test("an engine answers the same with steps ahead as without, for streams that end, repeat and share a prefix", async () => {
  const backend = (goesAhead: boolean): Backend => ({
    name: "webgpu",
    async load(program, { ctxLen, slots, threads, precise }) {
      const { topK, ...session } = await gpu.backend.load(program, {
        ctxLen,
        slots,
        threads,
        precise,
        cacheDir: undefined,
      });
      return goesAhead ? { ...session, ...(topK && { topK }) } : session;
    },
  });
  const ids = Array.from({ length: 30 }, (_, i) => 10 + ((i * i) % 17));
  const ask = (from: number, num_predict: number): Ask => ({
    ids: ids.slice(from),
    options: { num_predict },
  });
  const asked: Ask[][] = [[ask(0, 10), ask(5, 6)], [ask(0, 8)], [ask(3, 7), ask(0, 12)], [ask(0, 14)]];
  const file = await fileOf("llama");
  const before = await gpu.tally();
  const some = await answersOf({ backend: backend(true), file, drafts: false }, asked);
  const after = await gpu.tally();
  const none = await answersOf({ backend: backend(false), file, drafts: false }, asked);
  expect(some.said).toEqual(none.said);
  expect(after.readsBehind - before.readsBehind).toBeGreaterThan(20);
  expect((await gpu.tally()).readsBehind).toBe(after.readsBehind);
});
