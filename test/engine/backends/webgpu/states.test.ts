/** Slots of the GPU with recurrent steps: checkpoints, company, shifts, and checkpoints that move to the host. */
import { beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Session } from "../../../../src/engine/program/backend.ts";
import type { Checkpoint } from "../../../../src/engine/program/kept-slots.ts";
import type { BackendChild } from "../child.ts";
import { compressedProgram } from "../compressed.ts";
import { batchOf, hybridProgram } from "../hybrid.ts";
import { sharedWebGpu } from "./shared.ts";
import type { Spilling } from "./spilling.ts";
import { swiftShaderEnv } from "./swiftshader.ts";

setDefaultTimeout(120_000);

let gpu: BackendChild;
beforeAll(async () => void (gpu = await sharedWebGpu()));

/** Ids that all programs here have. */
const VOCAB = 37;
const STEPS = 9;
/** Programs, and bytes of a slot's states. */
const PROGRAMS = {
  "recurrent steps": { program: hybridProgram(), bytes: 4 * (3 * 32 + 2 * 8 * 8) },
  "rows that become entries": { program: compressedProgram(), bytes: 4 * 7 * (4 * 32 + 4 * 16) },
};
const each = Object.entries(PROGRAMS).map(([name, { program, bytes }]) => [name, program, bytes] as const);

const load = (program = hybridProgram()): Promise<Session> =>
  gpu.backend.load(program, { ctxLen: 32, slots: 3, precise: true, threads: 1, cacheDir: undefined });

const tokens = (from: number, count: number): Int32Array =>
  Int32Array.from({ length: count }, (_, i) => (from + 5 * i) % VOCAB);

test.each(each)("%s: a run after a restored checkpoint has the same bits, also in another slot", async (_, ...of) => {
  const [program, bytes] = of;
  const session = await load(program);
  await session.run(batchOf(0, 0, tokens(1, 9)));
  const checkpoint = await session.checkpoints!.save(0, 9);
  expect(checkpoint.bytes).toBe(bytes);
  const first = await session.run(batchOf(0, 9, tokens(3, 4)));
  await session.run(batchOf(0, 13, tokens(7, 2)));
  session.checkpoints!.restore(0, checkpoint);
  expect(await session.run(batchOf(0, 9, tokens(3, 4)))).toEqual(first);
  session.copy({ from: 0, to: 1, length: 9 });
  session.checkpoints!.restore(1, checkpoint);
  expect(await session.run(batchOf(1, 9, tokens(3, 4)))).toEqual(first);
  session.close();
});

test.each(each)(
  "%s: steps have the same bits beside others as alone, and a step at position 0 clears its slot",
  async (_, program) => {
    const session = await load(program);
    const alone: Float32Array[] = [];
    for (let i = 0; i < STEPS; i++) alone.push(await session.run(batchOf(0, i, tokens(2 + i, 1))));
    for (let i = 0; i < STEPS; i++) {
      const beside = [1, 2].map((slot) => ({
        slot,
        start: i,
        tokens: tokens(7 * slot + i, 1),
        logits: "none" as const,
      }));
      const own = { slot: 0, start: i, tokens: tokens(2 + i, 1), logits: "all" as const };
      expect(await session.run([beside[0]!, own, beside[1]!])).toEqual(alone[i]!);
    }
    session.close();
  },
);

test("a run that begins neither at 0 nor at the length of its slot is refused", async () => {
  const session = await load();
  await session.run(batchOf(0, 0, tokens(1, 9)));
  await expect(session.run(batchOf(0, 8, tokens(1, 1)))).rejects.toThrow("rows from 8 on, but its states stand at 9");
  await expect(session.checkpoints!.save(0, 8) as Promise<Checkpoint>).rejects.toThrow("slot 0 holds 9 tokens, not 8");
  session.close();
});

test("a slot continues from its new length after a context shift", async () => {
  const session = await load();
  await session.run(batchOf(0, 0, tokens(1, 30)));
  session.shift(0, { keep: 2, discard: 14, length: 30 });
  expect((await session.run(batchOf(0, 16, tokens(1, 3)))).every(Number.isFinite)).toBe(true);
  session.close();
});

test("checkpoints beyond the device's share of memory move to the host, and are restored from there", async () => {
  const child = Bun.spawn([process.execPath, `${import.meta.dir}/spilling.ts`], {
    env: { ...process.env, ...(await swiftShaderEnv()) },
    stderr: "inherit",
  });
  const { buffers, restored, packed } = JSON.parse(await child.stdout.text()) as Spilling;
  expect(buffers).toBe(2);
  expect(restored).toEqual([0, 1, 2, 3, 4, 5].map((i) => [100 + i, 100 + i]));
  expect(packed).toEqual([100, 101, 102, 103, 104, 105]);
});
