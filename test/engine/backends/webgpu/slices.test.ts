/** Prompts in parts on the GPU, between the steps of other slots: the bits of whole runs. */
import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Program, Rows, Session } from "../../../../src/engine/program/backend.ts";
import { conformanceCases } from "../../../conformance/cases.ts";
import type { BackendChild } from "../child.ts";
import { expectClose } from "../compare.ts";
import { hybridProgram } from "../hybrid.ts";
import { sharedWebGpu } from "./shared.ts";

setDefaultTimeout(120_000);

let gpu: BackendChild;
beforeAll(async () => void (gpu = await sharedWebGpu()));

const load = (program: Program): Promise<Session> =>
  gpu.backend.load(program, { ctxLen: 256, slots: 3, precise: true, threads: 1, cacheDir: undefined });

function rows(slot: number, start: number, count: number, logits: Rows["logits"] = "last"): Rows {
  const tokens = Int32Array.from({ length: count }, (_, i) => (slot * 17 + (start + i) * 5 + 3) % 37);
  return { slot, start, tokens, logits };
}

/** One dispatch at a time after the first part, with a step of two other slots in between. */
async function interleaved(session: Session, prompt: Rows, at: { next: number }): Promise<[Float32Array, number[]]> {
  const run = session.slices!.start(prompt);
  const steps: number[] = [];
  for (;;) {
    const done = await run.next(0);
    if (done) return [done.slice(), steps];
    const logits = await session.run([rows(1, at.next++, 1), rows(2, at.next, 1)]);
    steps.push(...logits);
  }
}

const attention = conformanceCases().find(({ name }) => name === "attention: 4 heads on 4 of 16")!;
const programs = { attention: attention.program, "recurrent layers and attention": hybridProgram() };

describe.each(Object.entries(programs))("%s", (_, program) => {
  test("a run in parts, and steps between its parts, have the logits of whole runs", async () => {
    const session = await load(program);
    const begin = async (): Promise<void> => {
      for (const slot of [1, 2]) await session.run([rows(slot, 0, 10)]);
      await session.run([rows(2, 10, 1)]);
    };
    await begin();
    const at = { next: 10 };
    const [none, before] = await interleaved(session, rows(0, 0, 60, "none"), at);
    const [last, after] = await interleaved(session, rows(0, 60, 40), at);
    const next = await session.run([rows(0, 100, 1)]);
    expect(none.length).toBe(0);
    expect(before.length + after.length).toBeGreaterThan(5 * 2 * program.logits!.dim);

    await session.run([rows(0, 0, 60, "none")]);
    expect(await session.run([rows(0, 60, 40)])).toEqual(last);
    expect(await session.run([rows(0, 100, 1)])).toEqual(next);
    await begin();
    const steps: number[] = [];
    for (let i = 10; i < at.next; i++) steps.push(...(await session.run([rows(1, i, 1), rows(2, i + 1, 1)])));
    expect(steps).toEqual([...before, ...after]);
    session.close();
  });

  test("a prompt beside a run in parts agrees with one alone, and has its bits once that run is abandoned", async () => {
    const session = await load(program);
    const alone = await session.run([rows(1, 0, 60)]);
    const run = session.slices!.start(rows(0, 0, 60));
    await run.next(0);
    expectClose(await session.run([rows(1, 0, 60)]), alone, attention.tolerance);
    run.abandon!();
    expect(await session.run([rows(1, 0, 60)])).toEqual(alone);
    session.close();
  });
});

test("a run within its budget takes one part, and so do runs of few rows and runs that want all logits", async () => {
  const session = await load(programs.attention);
  const first = session.slices!.start(rows(0, 0, 60));
  while (!(await first.next(1e12))) continue; // measures
  const run = session.slices!.start(rows(0, 0, 60));
  expect(await run.next(1e12)).toBeDefined();
  expect(run.longestNs).toBeGreaterThan(0);
  expect(await session.slices!.start(rows(0, 0, 32)).next(0)).toEqual(await session.run([rows(0, 0, 32)]));
  const all = rows(0, 0, 60, "all");
  expect(await session.slices!.start(all).next(0)).toEqual(await session.run([all]));
  session.close();
});
