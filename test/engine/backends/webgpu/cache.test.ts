/** The KV cache in float16, in 8 bits and in 4: against the reference and the CPU's cache, on a software adapter. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cacheTypeOf } from "../../../../kernels/wgsl/cache.ts";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import type { Backend, LoadOptions, Rows, Session, StateRows } from "../../../../src/engine/program/backend.ts";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../../src/engine/formats/files/write.ts";
import { CTX_LEN, makeModel, TOKENS } from "../../architectures/models.ts";
import { runCase, type Case } from "../../../conformance/cases.ts";
import { attention, makeCase, plainRope, VOCAB } from "../../../conformance/draft.ts";
import { runnableCases } from "./chosen-cases.ts";
import { drawn } from "../../../seed.ts";
import type { BackendChild } from "../child.ts";
import { expectClose, joined, nmse } from "../compare.ts";
import { simdLevels } from "../simd/levels.ts";
import { sharedWebGpu } from "./shared.ts";

/** Rounding to 11 bits moves a value by up to 5e-4 of itself; a score adds up the errors of a head. */
const TOLERANCE = { abs: 3e-3, rel: 3e-3 };
const NMSE_MAX = 1e-5;

let gpu: BackendChild;
let folder = "";
beforeAll(async () => {
  gpu = await sharedWebGpu();
  folder = await mkdtemp(join(tmpdir(), "hearth-webgpu-cache-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

const cases = runnableCases().filter(({ name }) =>
  /^(attention|sharedAttention|latentAttention|compressedAttention|choosePositions|rope):/.test(name),
);
const caseOf = (name: string) => cases.find((each) => each.name === name)!;

test("attention and rotations, some by the seed, agree with the reference in float16", async () => {
  const both = cases.filter(({ name }) => /^(attention|rope):/.test(name));
  for (const each of drawn("a cache in float16", both, 3)) {
    const expected = await runCase(cpuBackend, each);
    const got = await runCase(gpu.backend, each, { precise: false });
    try {
      for (const [i, logits] of got.entries()) expectClose(logits, expected[i]!, TOLERANCE);
    } catch (cause) {
      throw new Error(`case '${each.name}'`, { cause });
    }
  }
}, 300_000);

/** The CPU's cache in 8 bits, everything else in float32. */
const EIGHT_BITS = { precise: false, small: true, kvType: "q8_0" } as const;
/** Both caches round alike, so that only sums differ; a value near the middle of two integers may go either way. */
const ALIKE_NMSE_MAX = 2e-6;
/** As for the CPU's cache in 4 bits. */
const FOUR_NMSE_MAX = 4e-2;
/** Error by that of the CPU's cache, whose rows read their own key and value before these are rounded to 4 bits. */
const OF_CPU_MAX = 1.75;
/** Groups of other sizes round differently; the bound is the error of 8 bits against the reference. */
const EIGHT_NMSE_MAX = 1.2e-4;

/** A run draws some of them by its seed. */
const EIGHT_BIT_CASES = [
  ["rope: neox", "q8_0/16"],
  ["rope: heads of 80, normed over each head", "q8_0/16"],
  ["attention: 6 heads on 2 of 32", "q8_0"],
  ["attention: 3 heads on 1 of 512", "q8_0"],
  ["attention: values of 24, sinks, in a window of 3", "q8_0/8"],
  ["attention: a long context, 4 heads on 1 of 64", "q8_0"],
  ["attention: a long context, heads that rotate, each normed, in a window of 65", "q8_0"],
  ["attention: a long context, chunks of 280", "q8_0/16"],
  ["sharedAttention: a window of 3, capped", "q8_0/16"],
  ["latentAttention: 4 heads", "q8_0/8"],
  ["compressedAttention: blocks of 8 without sinks", "q8_0/8"],
] as const;

test.each(drawn("a cache in 8 bits", EIGHT_BIT_CASES, 3))(
  "in 8 bits, %s gives the results of the CPU's cache in 8 bits",
  async (name, type) => {
    const each = caseOf(name);
    expect(cacheTypeOf(each.program.steps, EIGHT_BITS)).toBe(type);
    const got = joined(await runCase(gpu.backend, each, EIGHT_BITS));
    const exact = joined(await runCase(cpuBackend, each));
    expect(nmse(got, exact)).toBeLessThan(EIGHT_NMSE_MAX);
    expect(nmse(got, exact)).toBeGreaterThan(1e-6); // the cache is in 8 bits
    const [simd] = simdLevels;
    const isAlike = type === "q8_0" || Number(type.slice(5)) === headDimOf(each);
    if (simd && isAlike)
      expect(nmse(got, joined(await runCase(simd.backend, each, EIGHT_BITS)))).toBeLessThan(ALIKE_NMSE_MAX);
  },
  180_000,
);

/** The CPU's cache in 4 bits, everything else in float32. */
const FOUR_BITS = { precise: false, small: true, kvType: "q4_0" } as const;

/** A run draws some of them by its seed. */
const FOUR_BIT_CASES = [
  ["attention: 6 heads on 2 of 32", "q4_0"],
  ["attention: 3 heads on 1 of 512", "q4_0"],
  ["attention: a long context, 4 heads on 1 of 64", "q4_0"],
  ["attention: a long context, heads that rotate, each normed, in a window of 65", "q4_0"],
  ["rope: neox", "q8_0/16"],
] as const;

test.each(drawn("a cache in 4 bits", FOUR_BIT_CASES, 1))(
  "in 4 bits, %s is as near to the reference as the CPU's cache in 4 bits",
  async (name, type) => {
    const each = caseOf(name);
    expect(cacheTypeOf(each.program.steps, FOUR_BITS)).toBe(type);
    const exact = joined(await runCase(cpuBackend, each));
    const error = nmse(joined(await runCase(gpu.backend, each, FOUR_BITS)), exact);
    expect(error).toBeLessThan(type === "q4_0" ? FOUR_NMSE_MAX : EIGHT_NMSE_MAX);
    if (type === "q4_0") expect(error).toBeGreaterThan(EIGHT_NMSE_MAX);
    const [simd] = simdLevels;
    if (!simd || type !== "q4_0") return;
    const ofCpu = nmse(joined(await runCase(simd.backend, each, FOUR_BITS)), exact);
    expect(error / ofCpu).toBeLessThan(OF_CPU_MAX); // both rotate; scales are rounded differently
    expect(error / ofCpu).toBeGreaterThan(0.6);
  },
  180_000,
);

const FEW_BITS = [
  ["4 bits", FOUR_BITS, FOUR_NMSE_MAX, 1e-4],
  ["8 bits", EIGHT_BITS, EIGHT_NMSE_MAX, 1e-6],
] as const;

test.each(drawn("copies in few bits", FEW_BITS, 1))(
  "in %s, copies and blocks keep their bits, drafts have those of single rows, and a shift is near to float32",
  async (_, mode, most, least) => {
    const { program } = makeCase("few bits", { dim: 64 }, (draft) =>
      attention(draft, { nHeads: 4, nKvHeads: 2, headDim: 64, rope: plainRope, norms: "head" }),
    );
    const load = (own: Partial<LoadOptions>): Promise<Session> =>
      gpu.backend.load(program, { ctxLen: 128, slots: 3, precise: false, threads: 1, cacheDir: undefined, ...own });
    const tokens = Int32Array.from({ length: 100 }, (_, i) => (i * i) % VOCAB);
    const rows = (slot: number, start: number, end: number, drafted = false): Rows => {
      return { slot, start, tokens: tokens.slice(start, end), logits: "all", drafted };
    };
    const [rounded, float] = [await load(mode), await load({ precise: true })];
    const shifted: Float32Array[] = [];
    for (const session of [rounded, float]) {
      await session.run([rows(0, 0, 80)]);
      await session.copy({ from: 0, to: 1, length: 80 });
      const { blocks } = session;
      for (const [first, count] of [
        [0, 64],
        [64, 16],
      ] as const) {
        await blocks!.write(2, { first, count, bytes: await blocks!.read(0, first, count) });
      }
      const drafted = (await session.run([rows(0, 80, 90, true)])).slice();
      const single: number[] = [];
      for (let at = 80; at < 90; at++) single.push(...(await session.run([rows(1, at, at + 1)])));
      expect(drafted).toEqual(Float32Array.from(single));
      expect(await session.run([rows(2, 80, 90, true)])).toEqual(drafted);
      session.shift(0, { keep: 5, discard: 10, length: 90 });
      shifted.push((await session.run([{ ...rows(0, 90, 98), start: 80 }])).slice());
      session.close();
    }
    expect(nmse(shifted[0]!, shifted[1]!)).toBeLessThan(most);
    expect(nmse(shifted[0]!, shifted[1]!)).toBeGreaterThan(least);
  },
  180_000,
);

const headDimOf = ({ program: { steps } }: Case): number =>
  Math.max(...steps.map((step) => ("headDim" in step ? (step.headDim ?? 0) : 0)));

/** Rounded keys may choose another position than the reference does: the same one on both engines. */
const CHOICE_NMSE_MAX = { f16: 2e-5, q8_0: 2e-3, q4_0: 2 * FOUR_NMSE_MAX };

const CHOICES = [
  ["of each KV head, 3 blocks of 4", "f16", "f16"],
  ["3 blocks of 4, the last one always", "q8_0", "q8_0/8"],
  ["9 of 1, heads of the usual size", "q8_0", "q8_0"],
  ["9 of 1, heads of the usual size", "q4_0", "q4_0"],
] as const;

test.each(drawn("choices in few bits", CHOICES, 2))(
  "choosePositions: %s: a cache in %s is as near to the reference as on the CPU",
  async (name, kvType, type) => {
    const each = caseOf(`choosePositions: ${name}`);
    const mode = { precise: false, kvType } as const;
    expect(cacheTypeOf(each.program.steps, mode)).toBe(type);
    const exact = joined(await runCase(cpuBackend, each));
    const error = nmse(joined(await runCase(gpu.backend, each, mode)), exact);
    expect(error).toBeLessThan(CHOICE_NMSE_MAX[kvType]);
    const [simd] = simdLevels;
    if (!simd || kvType === "f16") return;
    const ofCpu = nmse(joined(await runCase(simd.backend, each, { ...mode, small: true })), exact);
    expect(error / ofCpu).toBeWithin(0.6, OF_CPU_MAX);
  },
  180_000,
);

test("a NaN in keys is an error with a cache in 8 bits", async () => {
  const { program, options } = caseOf("attention: 6 heads on 2 of 32");
  const broken = program.weights.read("w2.weight").slice().fill(0xff); // the keys' matrix
  const read = (name: string): Uint8Array => (name === "w2.weight" ? broken : program.weights.read(name));
  const parts = { ...program, weights: { ...program.weights, read } };
  const session = await gpu.backend.load(parts, { ...options, ...EIGHT_BITS, threads: 1, cacheDir: undefined });
  const rows = { slot: 0, start: 0, tokens: Int32Array.of(1, 2), logits: "last" } as const;
  await expect(session.run([rows])).rejects.toThrow("expected numbers, got NaN");
  session.close();
}, 180_000);

test("a value takes 4 bytes in precise mode, 2 by default, and 36/32 or 20/32 in q8_0 or q4_0", async () => {
  const { program, options } = caseOf("attention: 6 heads on 2 of 32");
  const kvBytes = async (mode: Partial<LoadOptions>): Promise<number> => {
    const all = { ...options, precise: false, threads: 1, cacheDir: undefined, ...mode };
    const session = await gpu.backend.load(program, all);
    session.close();
    return session.bytes.kv;
  };
  const values = 2 * options.slots * options.ctxLen * 2 * 32;
  expect(await kvBytes({ precise: true })).toBe(4 * values);
  expect(await kvBytes({})).toBe(2 * values);
  expect(await kvBytes({ kvType: "q8_0" })).toBe((36 / 32) * values);
  expect(await kvBytes({ kvType: "q4_0" })).toBe((20 / 32) * values);
  expect(await kvBytes({ kvType: "q8_0", precise: true })).toBe(4 * values);
}, 180_000);

test("the cache is in float32 if heads are no multiple of 4, and not in 8 bits if they are no multiple of 8", () => {
  const typeOf = (name: string, precise = false) => cacheTypeOf(caseOf(name).program.steps, { precise });
  expect(typeOf("attention: 6 heads on 2 of 32")).toBe("f16");
  expect(typeOf("attention: 6 heads on 2 of 32", true)).toBe("f32");
  expect(typeOf("attention: a long context, 5 heads on 1 of 7")).toBe("f32");
  const { steps } = caseOf("attention: a long context, ALiBi, five heads on 1").program; // heads of 20
  expect(cacheTypeOf(steps, { precise: false, kvType: "q8_0" })).toBe("f16");
  expect(cacheTypeOf(steps, { precise: false, kvType: "q8_0", small: true })).toBe("f32");
});

/** States of a prompt, of the continuation after a shift, and of one in another slot. */
async function statesOf(backend: Backend, path: string, mode: Partial<LoadOptions> = {}): Promise<Float32Array> {
  const gguf = openGguf(path);
  const options = { ctxLen: CTX_LEN, slots: 2, precise: false, threads: 1, cacheDir: undefined, ...mode };
  const session: Session = await backend.load(loadProgram(gguf), options);
  const rows = (start: number, end: number, states: StateRows["states"]): StateRows[] => [
    { slot: 0, start, tokens: TOKENS.subarray(start, end), states },
  ];
  const prompt = (await session.states(rows(0, 20, "all"))).slice();
  session.shift(0, { keep: 3, discard: 6, length: 20 });
  const shifted = (await session.states(rows(14, 16, "all"))).slice();
  session.copy({ from: 0, to: 1, length: 16 });
  const copied = await session.states([{ slot: 1, start: 16, tokens: TOKENS.subarray(16, 17), states: "last" }]);
  session.close();
  gguf.close();
  return Float32Array.from([...prompt, ...shifted, ...copied]);
}

const STYLES = [
  ["llama", "neighbours"],
  ["qwen3", "halves"],
] as const;

for (const [name, style] of drawn("shifts in a small cache", STYLES, 1)) {
  test(`${name}, whose rotations pair ${style}: states agree with the reference after a shift and a copy`, async () => {
    const path = join(folder, `${name}.gguf`);
    await writeGguf(path, makeModel(name));
    const exact = await statesOf(cpuBackend, path);
    expect(nmse(await statesOf(gpu.backend, path), exact)).toBeLessThan(NMSE_MAX);
    const eight = await statesOf(gpu.backend, path, EIGHT_BITS);
    expect(nmse(eight, exact)).toBeLessThan(EIGHT_NMSE_MAX);
    const [simd] = simdLevels;
    if (simd) expect(nmse(eight, await statesOf(simd.backend, path, EIGHT_BITS))).toBeLessThan(5 * ALIKE_NMSE_MAX);
  }, 120_000);
}
