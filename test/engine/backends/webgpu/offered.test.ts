/** Adapters that rows choose, on a GPU: the reference's results, and each row's bits whatever the other rows are. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import type { Program, RowAdapter, Rows, Session, TopKRows } from "../../../../src/engine/program/backend.ts";
import type { TopK } from "../../../../src/engine/text/sampling/top-k.ts";
import { loadSplit } from "../../../../src/engine/program/split.ts";
import { VOCAB } from "../../architectures/models.ts";
import { makeOffered, type Offered } from "../../architectures/offered.ts";
import type { BackendChild } from "../child.ts";
import { differences, joined, nmse } from "../compare.ts";
import { sharedWebGpu } from "./shared.ts";

setDefaultTimeout(120_000);

const SLOTS = 5;
const PROMPT = 20;
const STEPS = 2;
const options = { ctxLen: 96, slots: SLOTS, precise: true, threads: 2, cacheDir: undefined };

const NMSE_MAX = 1e-9;

let gpu: BackendChild;
let folder = "";
let offered: Offered;
let session: Session;
let reference: Session;
const load = (program: Program): Promise<Session> => gpu.backend.load(program, options);

beforeAll(async () => {
  gpu = await sharedWebGpu();
  folder = await mkdtemp(join(tmpdir(), "hearth-webgpu-offered-"));
  offered = await makeOffered({ folder, name: "llama", types: ["f16"] });
  session = await load(offered.program);
  reference = await cpuBackend.load(offered.program, options);
});
afterAll(async () => {
  session.close();
  reference.close();
  offered.close();
  await rm(folder, { recursive: true });
});

const chosen = (adapter: number, scale = 1): RowAdapter => ({ adapter, scale });
/** The adapters of each slot; rows with and without alternate. */
const CHOICES: readonly (readonly RowAdapter[])[] = [
  [chosen(0)],
  [],
  [chosen(2), chosen(3, 0.5)],
  [],
  [chosen(1), chosen(0, -2), chosen(3)],
];
const ALL = [...CHOICES.keys()];

function rows(slot: number, start: number, count: number, more: Partial<Rows> = {}): Rows {
  const tokens = Int32Array.from({ length: count }, (_, i) => (slot * 17 + (start + i) * 5 + 3) % VOCAB);
  return { slot, start, tokens, logits: "last", adapters: CHOICES[slot]!, ...more };
}

/** Logits of a slot alone: of its prompt, and of some steps. */
async function alone(session: Session, slot: number, more: Partial<Rows> = {}): Promise<Float32Array> {
  const parts = [(await session.run([rows(slot, 0, PROMPT, more)])).slice()];
  for (let i = 0; i < STEPS; i++) parts.push((await session.run([rows(slot, PROMPT + i, 1, more)])).slice());
  return joined(parts);
}

/** The same with steps of all slots together. */
async function together(): Promise<Float32Array[]> {
  const runs: Float32Array[] = [];
  const prompts: Float32Array[] = [];
  for (const slot of ALL) prompts.push((await session.run([rows(slot, 0, PROMPT)])).slice());
  runs.push(joined(prompts));
  for (let i = 0; i < STEPS; i++) runs.push((await session.run(ALL.map((slot) => rows(slot, PROMPT + i, 1)))).slice());
  return ALL.map((slot) => joined(runs.map((logits) => logits.subarray(slot * VOCAB, (slot + 1) * VOCAB))));
}

test("rows keep their bits in company, and have the reference's results", async () => {
  const own: Float32Array[] = [];
  for (const slot of ALL) own.push(await alone(session, slot));
  const all = await together();
  for (const slot of ALL) {
    expect(nmse(own[slot]!, await alone(reference, slot)), `slot ${slot}`).toBeLessThan(NMSE_MAX);
    expect(differences(all[slot]!, own[slot]!), `slot ${slot}`).toBe(0);
  }
  expect(new Set(own.map((logits) => logits.join())).size).toBe(SLOTS);

  const batch = ALL.map((slot) => rows(slot, 0, PROMPT, { logits: slot === 3 ? "none" : "all" })); // many rows
  expect(nmse(await session.run(batch), await reference.run(batch))).toBeLessThan(NMSE_MAX);
});

test("a row without adapters has the bits of the model without any on offer", async () => {
  const bare = await load(loadProgram(offered.gguf));
  expect(differences(await alone(session, 1), await alone(bare, 1, { adapters: [] }))).toBe(0);
  bare.close();
});

test("the device continues rows with the same adapters only", async () => {
  const request = { k: 1, masked: new Int32Array(0) };
  const step = async (at: number, tokens: readonly number[], choices = CHOICES): Promise<readonly TopK[]> => {
    const batch = [2, 4].map((slot, i) => {
      return { slot, start: at, tokens: Int32Array.of(tokens[i]!), logits: "last", adapters: choices[slot]!, request };
    });
    return (await session.topK!.run(batch as TopKRows[])).topK;
  };
  const chosenOf = (top: readonly TopK[]): number[] => top.map(({ ids }) => ids[0]!);
  for (const slot of [2, 4]) await session.run([rows(slot, 0, PROMPT)]);
  const before = await gpu.tally();
  const said = [await step(PROMPT, [3, 5])];
  for (let i = 1; i < 6; i++) said.push(await step(PROMPT + i, chosenOf(said.at(-1)!)));
  expect((await gpu.tally()).readsBehind - before.readsBehind).toBe(6 - 2);

  const next = [PROMPT + 6, chosenOf(said.at(-1)!), [...CHOICES.slice(0, 4), [chosen(1)]]] as const;
  const changed = await step(...next);
  await session.run([rows(0, 0, 1)]);
  expect(changed).toEqual(await step(...next));
  for (const slot of [2, 4]) await session.run([rows(slot, 0, PROMPT)]);
  let tokens = [3, 5];
  for (let i = 0; i < 6; i++) {
    await session.run([rows(0, 0, 1)]); // so that nothing goes ahead
    const top = await step(PROMPT + i, tokens);
    expect(top).toEqual(said[i]!);
    tokens = chosenOf(top);
  }
});

test("a prompt in parts has the bits of a whole one, whatever the steps between them choose", async () => {
  const expected = (await session.run([rows(4, 0, 40)])).slice();
  for (const slot of [0, 1]) await session.run([rows(slot, 0, PROMPT)]);
  const run = session.slices!.start(rows(4, 0, 40));
  let part: Float32Array | undefined;
  let between = 0;
  for (; !(part = await run.next(5e6)); between++) await session.run([rows(0, PROMPT, 1), rows(1, PROMPT, 1)]);
  expect(between).toBeGreaterThan(0);
  expect(differences(part, expected)).toBe(0);
});

test.each([1, 2])("with the last %i of the layers on the GPU, both parts follow the rows' choices", async (count) => {
  const split = await loadSplit(offered.program, options, { front: cpuBackend, back: gpu.backend, count });
  for (const slot of [2, 4])
    expect(nmse(await alone(split, slot), await alone(reference, slot)), `slot ${slot}`).toBeLessThan(NMSE_MAX);
  split.close();
});
