/**
 * Adapters that rows choose, at every level: the reference's results, and each row's bits whatever the other rows are.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import { keepStates } from "../../../../src/engine/batching/kept-states.ts";
import { withRollback } from "../../../../src/engine/batching/rollback.ts";
import { headOf } from "../../../../src/engine/program/head.ts";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import type { RowAdapter, Rows, Session } from "../../../../src/engine/program/backend.ts";
import { VOCAB } from "../../architectures/models.ts";
import { makeOffered } from "../../architectures/offered.ts";
import { differences, joined, nmse } from "../compare.ts";
import { everyLevel, twoLevels } from "./levels.ts";

const SLOTS = 6;
const options = { ctxLen: 96, slots: SLOTS, precise: false, threads: 2, cacheDir: undefined };

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-offered-simd-"))));
afterAll(() => rm(folder, { recursive: true }));

const all = (adapter: number, scale = 1): RowAdapter => ({ adapter, scale });
/** The adapters of each slot: each combination of two forms. */
const CHOICES: readonly (readonly RowAdapter[])[] = [
  [all(0)],
  [all(1)],
  [],
  [all(2), all(3, 0.5)],
  [all(0, -0.75)],
  [all(1), all(0, 2), all(3)],
];

function rows(slot: number, start: number, count: number, more: Partial<Rows> = {}): Rows {
  const tokens = Int32Array.from({ length: count }, (_, i) => (slot * 17 + (start + i) * 5 + 3) % VOCAB);
  return { slot, start, tokens, logits: "last", adapters: CHOICES[slot]!, ...more };
}

const PROMPT = 20;
const STEPS = 4;

/** Logits of each slot: of its prompt, and of some steps. */
type Answers = readonly (readonly Float32Array[])[];

async function alone(session: Session): Promise<Answers> {
  const answers: Float32Array[][] = [];
  for (let slot = 0; slot < SLOTS; slot++) {
    const own = [(await session.run([rows(slot, 0, PROMPT)])).slice()];
    for (let i = 0; i < STEPS; i++) own.push((await session.run([rows(slot, PROMPT + i, 1)])).slice());
    answers.push(own);
  }
  return answers;
}

/** All prompts in one run, in pairs with different chunks, then all steps together. */
async function together(session: Session): Promise<Answers> {
  const batch = [...CHOICES.keys()].map((slot) => rows(slot, 0, PROMPT));
  const answers = CHOICES.map((_, slot): Float32Array[] => [slot].map(() => new Float32Array(0)));
  const take = (logits: Float32Array, at: number): Float32Array => logits.slice(at * VOCAB, (at + 1) * VOCAB);
  const prompts = await session.run(batch);
  for (const own of answers) own[0] = take(prompts, answers.indexOf(own));
  for (let i = 0; i < STEPS; i++) {
    const logits = await session.run([...CHOICES.keys()].map((slot) => rows(slot, PROMPT + i, 1)));
    for (const [slot, own] of answers.entries()) own.push(take(logits, slot));
  }
  return answers;
}

const differing = (a: Answers, b: Answers): number[] =>
  a.map((own, slot) => differences(joined(own), joined(b[slot]!)));

const NONE = CHOICES.map(() => 0);

describe.each(twoLevels("offered on the CPU", everyLevel))("$level", ({ backend }) => {
  test.each([
    { name: "llama", types: ["f32"], small: false },
    { name: "llama", types: ["f16", "q8_0"], small: false },
    { name: "llama", types: ["q8_0"], small: true },
    { name: "llama", types: ["f16"], small: true },
    { name: "qwen3moe", types: ["f16"], small: false },
    { name: "phi3", types: ["f32"], small: true },
  ] as const)("$name with $types, small: $small: rows keep their bits", async ({ name, types, small }) => {
    const offered = await makeOffered({ folder, name, types });
    const session = await backend.load(offered.program, { ...options, small });
    const expected = await alone(session);
    expect(differing(await together(session), expected)).toEqual(NONE);
    expect(new Set(expected.map(([prompt]) => prompt!.join())).size).toBe(SLOTS);

    // A row without adapters has the bits of the model without them, and a row with one has the bits of the model with
    // it, except that a small model interleaves rows of q8_0, but not the rows of a stack.
    const bare = loadProgram(offered.gguf);
    const applied = loadProgram(offered.gguf, offered.adapters.slice(1, 2));
    const others = [[2, bare], ...(types[0] === "q8_0" ? [] : [[1, applied] as const])] as const;
    for (const [slot, program] of others) {
      const other = await backend.load(program, { ...options, small });
      const own = [(await other.run([rows(slot, 0, PROMPT, { adapters: [] })])).slice()];
      for (let i = 0; i < STEPS; i++)
        own.push((await other.run([rows(slot, PROMPT + i, 1, { adapters: [] })])).slice());
      expect(differences(joined(own), joined(expected[slot]!)), `slot ${slot}`).toBe(0);
      other.close();
    }
    session.close();
    offered.close();
  });

  test("chunks, parts and drafts of rows with adapters have the bits of whole runs", async () => {
    const offered = await makeOffered({ folder, name: "llama", types: ["f16"] });
    const session = await backend.load(offered.program, options);
    const expected = (await session.run([rows(3, 0, 64)])).slice();
    await session.run([rows(3, 0, 30, { logits: "none" })]);
    await session.run([rows(0, 0, 9), rows(3, 30, 20, { logits: "none" }), rows(5, 0, 3)]);
    expect(differences(await session.run([rows(3, 50, 14)]), expected)).toBe(0);

    const run = session.slices!.start(rows(3, 0, 64));
    let part: Float32Array | undefined;
    for (let i = 9; !(part = await run.next(0)); i++) await session.run([rows(0, i % 60, 1), rows(2, 0, 1)]);
    expect(differences(part, expected)).toBe(0);

    const one: Float32Array[] = [];
    for (let i = 0; i < 5; i++) one.push((await session.run([rows(5, 3 + i, 1)])).slice());
    const drafted = await session.run([rows(0, 70, 1), rows(5, 3, 5, { logits: "all", drafted: true })]);
    expect(differences(drafted.slice(VOCAB), joined(one))).toBe(0);
    session.close();
    offered.close();
  });
});

test("a session that keeps its states for a draft layer computes logits with the rows' adapters", async () => {
  const { backend } = everyLevel[0]!;
  const offered = await makeOffered({ folder, name: "llama", types: ["f16"] });
  const { program } = offered;
  const { dim } = program.states;
  const [session, plain, head] = [
    await backend.load(program, options),
    await backend.load(program, options),
    await backend.load(headOf(program), options),
  ];
  const kept = keepStates(session, { head, dim }).session;
  const prompts = [...CHOICES.keys()].map((slot) => rows(slot, 0, PROMPT));
  const step = [...CHOICES.keys()].map((slot) => rows(slot, PROMPT, 1));
  const drafted = [rows(3, PROMPT + 1, 4, { logits: "all", drafted: true })]; // its second adapter changes the output
  for (const batch of [prompts, step, drafted]) {
    expect(differences((await kept.run(batch)).slice(), await plain.run(batch))).toBe(0);
  }
  for (const each of [kept, plain]) each.close();
  offered.close();
});

test("rows that a rollback evaluates again keep their adapters", async () => {
  const { backend } = everyLevel[0]!;
  const offered = await makeOffered({ folder, name: "qwen35", types: ["f16"] });
  const { program } = offered;
  const states = program.states.dim;
  const make = async () => withRollback(await backend.load(program, options), { states, logits: VOCAB });
  const [session, plain] = [await make(), await make()];
  const draft = (count: number): Rows => rows(0, PROMPT, count, { logits: "all", drafted: true });
  for (const each of [session, plain]) await each.run([rows(0, 0, PROMPT)]);
  await session.run([draft(6)]);
  await plain.run([draft(2)]); // four of the six are rejected
  const next = rows(0, PROMPT + 2, 9);
  expect(differences((await session.run([next])).slice(), await plain.run([next]))).toBe(0);
  for (const each of [session, plain]) each.close();
  offered.close();
});

test("rows with adapters have the reference's results in precise mode", async () => {
  const offered = await makeOffered({ folder, name: "llama", types: ["f32", "q8_0"] });
  const batch = [...CHOICES.keys()].map((slot) => rows(slot, 0, PROMPT, { logits: "all" }));
  const reference = await cpuBackend.load(offered.program, { ...options, precise: true });
  const expected = (await reference.run(batch)).slice();
  for (const { backend } of everyLevel) {
    const session = await backend.load(offered.program, { ...options, precise: true });
    expect(nmse(await session.run(batch), expected)).toBeLessThan(1e-9);
    session.close();
  }
  offered.close();
});
