/** The KV cache in float16, for imprecise runs: against the reference, on a software adapter. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cacheTypeOf } from "../../../../kernels/wgsl/cache.ts";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import type { Backend, Session, StateRows } from "../../../../src/engine/program/backend.ts";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../../src/engine/formats/files/write.ts";
import { CTX_LEN, makeModel, TOKENS } from "../../architectures/models.ts";
import { runCase } from "../../../conformance/cases.ts";
import { runnableCases } from "./chosen-cases.ts";
import type { BackendChild } from "../child.ts";
import { expectClose, nmse } from "../compare.ts";
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

const cases = runnableCases().filter(({ name }) => /^(attention|rope):/.test(name));
const caseOf = (name: string) => cases.find((each) => each.name === name)!;

test("attention and rotations agree with the reference in float16", async () => {
  for (const each of cases) {
    const expected = await runCase(cpuBackend, each);
    const got = await runCase(gpu.backend, each, { precise: false });
    try {
      for (const [i, logits] of got.entries()) expectClose(logits, expected[i]!, TOLERANCE);
    } catch (cause) {
      throw new Error(`case '${each.name}'`, { cause });
    }
  }
}, 300_000);

test("a cache takes half the bytes, unless numbers are to be precise", async () => {
  const { program, options } = caseOf("attention: 6 heads on 2 of 32");
  const kvBytes = async (precise: boolean): Promise<number> => {
    const session = await gpu.backend.load(program, { ...options, precise, threads: 1, cacheDir: undefined });
    session.close();
    return session.bytes.kv;
  };
  const values = 2 * options.slots * options.ctxLen * 2 * 32;
  expect([await kvBytes(true), await kvBytes(false)]).toEqual([4 * values, 2 * values]);
}, 60_000);

test("heads and rotations that do not come in fours are kept in float32", () => {
  const typeOf = (name: string, precise = false) => cacheTypeOf(caseOf(name).program.steps, { precise });
  expect(typeOf("attention: 6 heads on 2 of 32")).toBe("f16");
  expect(typeOf("attention: 6 heads on 2 of 32", true)).toBe("f32");
  expect(typeOf("attention: a long context, 5 heads on 1 of 7")).toBe("f32");
  const { steps } = caseOf("rope: neox").program;
  const turnedBy = (rotaryDim: number) =>
    steps.map((step) => (step.op === "rope" ? { ...step, rope: { ...step.rope, rotaryDim } } : step));
  expect(cacheTypeOf(turnedBy(12), { precise: false })).toBe("f16");
  expect(cacheTypeOf(turnedBy(10), { precise: false })).toBe("f32");
});

/** States of a prompt, of the continuation after a shift, and of one in another slot. */
async function statesOf(backend: Backend, path: string): Promise<Float32Array> {
  const gguf = openGguf(path);
  const options = { ctxLen: CTX_LEN, slots: 2, precise: false, threads: 1, cacheDir: undefined };
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

for (const [name, style] of [
  ["llama", "neighbours"],
  ["qwen3", "halves"],
]) {
  test(`${name}, whose rotations pair ${style}: states agree with the reference after a shift and a copy`, async () => {
    const path = join(folder, `${name}.gguf`);
    await writeGguf(path, makeModel(name!));
    expect(nmse(await statesOf(gpu.backend, path), await statesOf(cpuBackend, path))).toBeLessThan(NMSE_MAX);
  }, 120_000);
}
