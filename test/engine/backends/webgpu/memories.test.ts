/** Memories of slots on a software adapter: how they are computed and replaced, and rows without them. */
import { beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import { simdBackend } from "../../../../src/engine/backends/host/simd.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import type { LoadOptions, Memory, Program, Rows, Session, TopKRows } from "../../../../src/engine/program/backend.ts";
import { withoutMemory } from "../../../../src/engine/program/memory.ts";
import { layerCount, loadSplit } from "../../../../src/engine/program/split.ts";
import { rows } from "../../../conformance/draft.ts";
import { memoryCase, memoryCases, memoryOf } from "../../../conformance/memory-cases.ts";
import { convertOriginal, readOriginals, readRows } from "../../../library/convert/originals.ts";
import type { BackendChild } from "../child.ts";
import { expectClose, nmse } from "../compare.ts";
import { sharedWebGpu } from "./shared.ts";

setDefaultTimeout(120_000);

let gpu: BackendChild;
beforeAll(async () => void (gpu = await sharedWebGpu()));

const options: LoadOptions = { ctxLen: 80, slots: 3, precise: true, threads: 1, cacheDir: undefined };
const [, shared, long, biased] = memoryCases();
const [short, other, far] = [memoryOf("short", 2), memoryOf("other", 33), memoryOf("far", 300)];
const cases = [
  { program: shared!.program, longest: far },
  { program: biased!.program, longest: other },
];
const run = async (session: Session, ...batch: Rows[]): Promise<number[]> => [...(await session.run(batch))];

async function on<T>(program: Program, use: (session: Session) => Promise<T>, more: Partial<LoadOptions> = {}) {
  const session = await gpu.backend.load(program, { ...options, ...more });
  try {
    return await use(session);
  } finally {
    session.close();
  }
}

test.each(cases)("a row with a memory, or without, has the same bits alone and beside others: %#", async (each) => {
  const { program, longest: memory } = each;
  const prompts: Rows[] = [
    { ...rows(0, 0, 5, "all"), memory: short },
    rows(1, 0, 4, "all"),
    { ...rows(2, 0, 6, "all"), memory },
  ];
  const steps: Rows[] = [
    { ...rows(0, 5, 1, "last"), memory: short },
    rows(1, 4, 1, "last"),
    { ...rows(2, 6, 1, "last"), memory },
  ];
  for (const precise of [true, false]) {
    await on(
      program,
      async (session) => {
        for (const batch of [prompts, steps]) {
          const apart: number[] = [];
          for (const entry of batch) apart.push(...(await run(session, entry)));
          expect(await run(session, ...batch)).toEqual(apart);
        }
      },
      { precise },
    );
  }
});

test("rows without a memory take the dispatches of the program without cross attention, and have its bits", async () => {
  const { program } = shared!;
  const bare = withoutMemory(program);
  const dispatched = async (session: Session, entry: Rows): Promise<[number, number[]]> => {
    const before = (await gpu.tally()).calls["dispatchWorkgroups"]!;
    const logits = await run(session, entry);
    return [(await gpu.tally()).calls["dispatchWorkgroups"]! - before, logits];
  };
  for (const start of [0, 40]) {
    const prompt = rows(0, 0, 40, "none");
    const entry = rows(0, start, start === 0 ? 40 : 2, "last");
    const counts: number[] = [];
    await on(bare, async (plain) => {
      await on(program, async (session) => {
        for (const each of [plain, session]) await run(each, prompt);
        const [[few, wanted], [same, got]] = [await dispatched(plain, entry), await dispatched(session, entry)];
        expect(got).toEqual(wanted);
        counts.push(few, same);
        await run(session, { ...entry, memory: far }); // computes it
        const [more, seeing] = await dispatched(session, { ...entry, memory: far });
        expect(seeing).not.toEqual(got);
        counts.push(more);
      });
    });
    const [few, same, more] = counts;
    expect(same).toBe(few!);
    // q, its norm, attention, the sum of its splits, y; gate and up, down, sum: one each, where some are fused
    expect(more! - few!).toBe(start === 0 ? 9 : 8);
  }
});

test("a slot attends to the memory that each run names: another one, none, or the first again", async () => {
  const { program } = shared!;
  await on(program, async (session) => {
    const at = (memory: Memory | undefined, slot = 0): Promise<number[]> => {
      return run(session, { ...rows(0, 0, 3, "all"), slot, memory });
    };
    const submits = async (use: () => Promise<unknown>): Promise<number> => {
      const before = (await gpu.tally()).submits;
      await use();
      return (await gpu.tally()).submits - before;
    };
    const [seen, none] = [await at(other), await at(undefined)];
    expect(none).not.toEqual(seen);
    expect(await submits(async () => expect(await at(other)).toEqual(seen))).toBe(1); // the slot still holds it
    const next = await at(far);
    expect(next).not.toEqual(seen);
    expect(next).toEqual(await at(far, 1));
    expect(await submits(async () => expect(await at(other)).toEqual(seen))).toBe(2);
    await session.copy({ from: 0, to: 2, length: 3 });
    const decode = (slot: number): Promise<number[]> => run(session, { ...rows(0, 3, 1, "last"), slot, memory: other });
    expect(await decode(2)).toEqual(await decode(0));
    const bytes = await session.blocks!.read(0, 0, 3);
    await session.blocks!.write(1, { first: 0, count: 3, bytes });
    expect(await decode(1)).toEqual(await decode(0));
  });
});

test("steps that ran ahead are dropped when a row has another memory, or none", async () => {
  const request = { k: 1, masked: new Int32Array(0) };
  const row = (start: number, token: number, memory: Memory | undefined): TopKRows => {
    return { slot: 0, start, tokens: Int32Array.of(token), logits: "last", request, memory };
  };
  await on(shared!.program, async (session) => {
    for (const [i, next] of [other, memoryOf("as long as the other", 33), undefined].entries()) {
      const logitsOf = async (rowsOf: TopKRows): Promise<number[]> => {
        const { topK } = await session.topK!.run([rowsOf]);
        return [...topK[0]!.ids, ...topK[0]!.logits];
      };
      await run(session, { ...rows(0, 0, 4, "none"), memory: other });
      const { readsBehind } = await gpu.tally();
      let token = 3;
      for (let at = 4; at < 10; at++) [token] = (await logitsOf(row(at, token, other))) as [number];
      expect((await gpu.tally()).readsBehind - readsBehind).toBe(4);
      const got = await logitsOf(row(10, token, next));
      await run(session, { ...rows(0, 0, 1, "none"), slot: 1 }); // nothing runs ahead now
      expect(got, `memory ${i}`).toEqual(await logitsOf(row(10, token, next)));
    }
  });
});

test("a prompt in parts keeps its memory while other slots compute theirs", async () => {
  await on(long!.program, async (session) => {
    const prompt = { ...rows(0, 0, 60, "last"), memory: memoryOf("first", 600) };
    const whole = await run(session, prompt);
    const alone = await run(session, { ...rows(1, 0, 2, "last"), memory: short });
    const sliced = session.slices!.start(prompt);
    let done: Float32Array | undefined;
    for (let i = 0; !done; i++) {
      const memory = i % 2 === 0 ? short : memoryOf("second", 520);
      const beside = await run(session, { ...rows(1, 0, 2, "last"), memory });
      if (i % 2 === 0) expect(beside).toEqual(alone);
      done = await sliced.next(0);
    }
    expect([...done]).toEqual(whole);
  });
});

test("the memories of slots grow with use, and keep their content when they grow", async () => {
  const heads = { nHeads: 2, nKvHeads: 2, headDim: 256 };
  const { program } = memoryCase("a large memory", { heads, rowsMax: 3000 });
  const [large, small] = [memoryOf("large", 1100), memoryOf("small", 3)];
  const batch: Rows[] = [
    { ...rows(0, 0, 2, "all"), memory: small },
    { ...rows(2, 0, 2, "all"), memory: large },
  ];
  await on(program, async (session) => {
    expect(session.bytes.kv).toBeGreaterThan(3 * 3000 * 512 * 2 * 4);
    const before = await run(session, batch[0]!);
    expect((await run(session, ...batch)).slice(0, before.length)).toEqual(before);
    const reference = await cpuBackend.load(program, options);
    expectClose(await session.run(batch), await reference.run(batch), shared!.tolerance);
    reference.close();
  });
});

test("layers cut between a CPU and the GPU, and between two GPUs, attend to the same memory", async () => {
  const { program } = memoryCase("two layers", {
    heads: { nHeads: 4, nKvHeads: 2, headDim: 16 },
    rowsMax: 300,
    layers: 2,
  });
  const batch: Rows[] = [
    { ...rows(0, 0, 6, "all"), memory: other },
    { ...rows(1, 0, 1, "last"), memory: far },
    rows(2, 0, 3, "last"),
  ];
  const reference = await cpuBackend.load(program, options);
  const expected = (await reference.run(batch)).slice();
  reference.close();
  for (let count = 2; count < layerCount(program); count++) {
    for (const front of [simdBackend, gpu.backend]) {
      const session = await loadSplit(program, options, { front, back: gpu.backend, count });
      expect(nmse(await session.run(batch), expected), `the last ${count}`).toBeLessThan(1e-9);
      session.close();
    }
  }
});

test("a prompt that T5's encoder has read there gets the answer of transformers", async () => {
  const folder = await mkdtemp(join(tmpdir(), "hearth-reader-"));
  const original = (await readOriginals())["T5-2"]!;
  const [ids, answer] = [original.read!, original.answer!.slice(0, 8)];
  const gguf = openGguf(await convertOriginal(folder, { name: "T5-2", original }));
  const { reader, ...program } = loadProgram(gguf);
  const memory = {
    id: "prompt",
    rows: await readRows({ reader: reader! }, { ids, backend: gpu.backend, options: { ...options, ctxLen: 140 } }),
  };
  const said = [reader!.start];
  await on(program, async (session) => {
    while (said.length < answer.length) {
      const tokens = Int32Array.of(said.at(-1)!);
      const logits = await run(session, { slot: 2, start: said.length - 1, tokens, memory, logits: "last" });
      said.push(logits.indexOf(Math.max(...logits)));
    }
  });
  expect(said).toEqual(answer);
  gguf.close();
  await rm(folder, { recursive: true });
});
