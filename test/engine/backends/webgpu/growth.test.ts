/** The cost of a token, and memory of long-running processes: no growth after a thousand tokens and many models. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFile } from "node:fs/promises";
import type { LoadOptions } from "../../../../src/engine/program/backend.ts";
import { conformanceCases } from "../../../conformance/cases.ts";
import { makeCase } from "../../../conformance/draft.ts";
import { startWebGpu, type BackendChild } from "../child.ts";
import { expectClose } from "../compare.ts";
import { swiftShaderEnv } from "./swiftshader.ts";

const GROWTH_MAX = 1.1;
const CTX_LEN = 128;
const options: LoadOptions = { ctxLen: CTX_LEN, slots: 4, precise: true, threads: 1, cacheDir: undefined };

const { program, tolerance } = conformanceCases().find(({ name }) => name === "attention: 4 heads on 4 of 16")!;
let gpu: BackendChild;
beforeAll(async () => void (gpu = startWebGpu(await swiftShaderEnv())));
afterAll(() => gpu.stop());

/** Resident bytes of the process with the device. */
async function residentBytes(): Promise<number> {
  const kilobytes = /VmRSS:\s+(\d+) kB/.exec(await readFile(`/proc/${gpu.pid}/status`, "utf8"))![1];
  return 1024 * Number(kilobytes);
}

const onLinux = test.skipIf(process.platform !== "linux");

onLinux(
  "1,200 tokens leave the process as large as the first 400 did",
  async () => {
    const session = await gpu.backend.load(program, options);
    const decode = async (steps: number): Promise<void> => {
      for (let i = 0; i < steps; i++) {
        const row = (slot: number) =>
          ({ slot, start: i % CTX_LEN, tokens: Int32Array.of((7 * i + slot) % 37), logits: "last" }) as const;
        const request = { k: 1 + (i % 37), masked: Int32Array.of(i % 37) };
        // every other step gives logits, the others candidates too
        if (i % 2 === 0) await session.run([row(0), row(1), row(2), row(3)]);
        else await session.topK!.run([row(0), { ...row(1), request }, row(2), { ...row(3), request }]);
      }
    };
    await decode(100);
    const before = await residentBytes();
    await decode(200);
    expect((await residentBytes()) / before).toBeLessThan(GROWTH_MAX);
    session.close();
  },
  300_000,
);

test("a token takes one submit, makes no GPU object and reads back its logits, or 8 bytes for each candidate", async () => {
  const session = await gpu.backend.load(program, options);
  const row = (start: number) => ({ slot: 0, start, tokens: Int32Array.of(3), logits: "last" }) as const;
  const request = { k: 5, masked: Int32Array.of(1, 2) };
  const cost = async (run: () => Promise<unknown>) => {
    const before = await gpu.tally();
    await run();
    const after = await gpu.tally();
    return [after.submits - before.submits, after.objects - before.objects, after.bytesRead - before.bytesRead];
  };
  await session.run([row(0)]);
  expect(await cost(() => session.run([row(1)]))).toEqual([1, 0, 4 * program.shape.vocabSize]);
  expect(await cost(() => session.topK!.run([{ ...row(2), request }]))).toEqual([1, 0, 8 * 5 + 4 * 2]);
  const greedy = { k: 1, masked: new Int32Array(0) };
  expect(await cost(() => session.topK!.run([{ ...row(3), request: greedy }]))).toEqual([1, 0, 8]);
  session.close();
}, 60_000);

test("a token of many dispatches takes two submits: the device begins before all are submitted", async () => {
  const long = makeCase("a long step", { dim: 32 }, ({ x, steps }) => {
    for (let i = 0; i < 40; i++) steps.push({ op: "scale", x, by: 2 }, { op: "clamp", x, min: -1, max: 1 });
    return x;
  });
  const session = await gpu.backend.load(long.program, options);
  for (const tokens of [[3], [3, 4]]) {
    const before = (await gpu.tally()).submits;
    const logits = await session.run([{ slot: 0, start: 0, tokens: Int32Array.from(tokens), logits: "last" }]);
    expect((await gpu.tally()).submits - before).toBe(2);
    expect(logits.some((value) => value !== 0) && logits.every((value) => Math.abs(value) <= 1)).toBe(true);
  }
  session.close();
}, 60_000);

test("a step is encoded while the one before runs, unless it has other rows than expected", async () => {
  const session = await gpu.backend.load(program, options);
  const row = (slot: number, start: number) => ({ slot, start, tokens: Int32Array.of(3), logits: "last" }) as const;
  const passes = async (...rows: Parameters<typeof row>[]): Promise<number> => {
    const before = (await gpu.tally()).passes;
    await session.run(rows.map((each) => row(...each)));
    return (await gpu.tally()).passes - before;
  };
  expect(await passes([0, 0])).toBe(2); // its own, and the next
  expect(await passes([0, 1])).toBe(1); // the next
  expect(await passes([0, 2], [1, 0])).toBe(2);
  expect(await passes([0, 3], [1, 1])).toBe(1);
  session.close();
}, 60_000);

onLinux(
  "20 models, one after another, leave the process as large as the first 5 did",
  async () => {
    const cycle = async (times: number): Promise<void> => {
      for (let i = 0; i < times; i++) {
        const session = await gpu.backend.load(program, options);
        await session.run([{ slot: 0, start: 0, tokens: Int32Array.of(1, 2, 3, 4, 5, 6, 7, 8), logits: "last" }]);
        session.close();
      }
    };
    await cycle(5);
    const before = await residentBytes();
    await cycle(15);
    expect((await residentBytes()) / before).toBeLessThan(GROWTH_MAX);
  },
  300_000,
);

test("a context too short for a run of many rows makes no kernels for one, and gives a longer context's logits", async () => {
  const ask = async (ctxLen: number) => {
    const before = await gpu.tally();
    const session = await gpu.backend.load(program, { ...options, ctxLen });
    const objects = (await gpu.tally()).objects - before.objects;
    const rows = (slot: number) => ({ slot, start: 0, tokens: Int32Array.of(slot, 9 - slot), logits: "all" }) as const;
    const logits = (await session.run([rows(0), rows(1), rows(2), rows(3)])).slice();
    session.close();
    return { objects, logits };
  };
  (await gpu.backend.load(program, options)).close(); // compiles its kernels, and the child counts from here on
  const [long, short] = [await ask(33), await ask(32)];
  expect(short.objects).toBeLessThan(0.8 * long.objects);
  expectClose(short.logits, long.logits, tolerance);
}, 60_000);
