/** Proof that llama.cpp's logits of these models reveal what their families have: each mistake must show. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf } from "../../../src/base/index.ts";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import type { Program } from "../../../src/engine/program/backend.ts";
import type { Step } from "../../../src/engine/program/step.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf, type WriteModel } from "../../../src/engine/formats/files/write.ts";
import { i32 } from "../../../src/engine/formats/quant/i32.ts";
import { quants } from "../../../src/engine/formats/quant/index.ts";
import { nmse } from "../backends/compare.ts";
import { CTX_LEN, makeModel, TOKENS } from "./models.ts";
import { MUTATIONS } from "./mutations.ts";
import { newerFamilies } from "./newer-families.ts";

const NMSE_MAX = 1e-5;

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-newer-"))));
afterAll(() => rm(folder, { recursive: true }));

async function logitsOf(program: Program): Promise<Float32Array> {
  const options = { ctxLen: CTX_LEN, slots: 1, precise: true, threads: 1, cacheDir: undefined };
  const session = await cpuBackend.load(program, options);
  const logits = (await session.run([{ slot: 0, start: 0, tokens: TOKENS, logits: "all" }])).slice();
  session.close();
  return logits;
}

const without = ({ steps, ...program }: Program, isLost: (step: Step) => boolean): Program | undefined =>
  steps.some(isLost) ? { ...program, steps: steps.filter((step) => !isLost(step)) } : undefined;

function changed({ steps, ...program }: Program, change: (step: Step) => Step): Program | undefined {
  const made = steps.map(change);
  return made.some((step, i) => step !== steps[i]) ? { ...program, steps: made } : undefined;
}

/** Without an optional member of all steps that have it. @param op of these steps only */
const bare = (program: Program, member: string, op?: Step["op"]): Program | undefined =>
  changed(program, (step) => {
    if (!(member in step) || (op && step.op !== op)) return step;
    const others = Object.entries(step).filter(([name]) => name !== member);
    return Object.fromEntries(others) as unknown as Step; // the same op
  });

const OWN: readonly { readonly name: string; readonly apply: (program: Program) => Program | undefined }[] = [
  {
    name: "gates of heads lost",
    apply: (program) => without(program, (step) => step.op === "multiply" && step.act === "sigmoid"),
  },
  { name: "scales of streams lost", apply: (program) => without(program, ({ op }) => op === "multiplyVector") },
  { name: "least weights of streams lost", apply: (program) => without(program, ({ op }) => op === "clamp") },
  { name: "sinks lost", apply: (program) => bare(program, "sinks") },
  { name: "exponential part lost", apply: (program) => without(program, ({ op }) => op === "activate") },
  { name: "limits lost", apply: (program) => bare(program, "limit") },
  {
    name: "chosen blocks lost",
    apply: (program) => bare(program, "chosen", "compressedAttention"),
  },
  { name: "chosen experts lost", apply: (program) => bare(program, "chosen", "moe") },
  {
    name: "results not turned back",
    apply: (program) => without(program, (step) => step.op === "rope" && step.rope.back === true),
  },
  {
    name: "blocks turned as their last position",
    apply: (program) =>
      changed(program, (step) => {
        if (step.op !== "rope" || !step.rope.delay) return step;
        const { delay: _, ...rope } = step.rope;
        return { ...step, rope };
      }),
  },
  {
    name: "streams balanced once",
    apply: (program) => changed(program, (step) => (step.op === "streamWeights" ? { ...step, iterations: 1 } : step)),
  },
];

/** The error of a load of a changed model, or `loaded`. */
async function openChanged(made: WriteModel, change: Partial<WriteModel>): Promise<string> {
  const path = join(folder, "refused.gguf");
  await writeGguf(path, { ...made, ...change });
  const gguf = openGguf(path);
  try {
    loadProgram(gguf);
    return "loaded";
  } catch (error) {
    return messageOf(error);
  } finally {
    gguf.close();
  }
}

test("a table of unknown experts and too large a compression ratio are refused", async () => {
  const made = makeModel("deepseek4");
  const table = made.tensors.find(({ name }) => name === "blk.1.ffn_gate_tid2eid.weight")!;
  const open = (change: Partial<typeof made>): Promise<string> => openChanged(made, change);
  const with4 = { ...table, data: new Uint8Array(new Int32Array(2 * 64).fill(4).buffer) };
  expect(await open({ tensors: made.tensors.map((each) => (each === table ? with4 : each)) })).toContain(
    "tensor 'blk.1.ffn_gate_tid2eid.weight': expected whole numbers of 0 … 3, got 4",
  );
  const floats = { ...table, quant: quants.f32 };
  expect(await open({ tensors: made.tensors.map((each) => (each === table ? floats : each)) })).toContain(
    "expected whole numbers of (2, 64), got f32 of (2, 64)",
  );
  const ratios = { "deepseek4.attention.compress_ratios": new Uint32Array([0, 4, 1025]) };
  expect(await open({ metadata: { ...made.metadata, ...ratios } })).toContain(
    "'deepseek4.attention.compress_ratios': expected a whole number of 0 … 1024 for layer 2, got 1025",
  );
  const heads = made.tensors.map((each) => (each.name === "blk.0.attn_kv.weight" ? { ...each, quant: i32 } : each));
  expect(await open({ tensors: heads })).toContain("'blk.0.attn_kv.weight': expected weights, got whole numbers");
});

test("a first layer without an indexer and too many streams are refused", async () => {
  const made = makeModel("hy_v4");
  const open = (change: Partial<typeof made>): Promise<string> => openChanged(made, change);
  const types = { "hy_v4.attention.indexer.types": [false, false, true] };
  expect(await open({ metadata: { ...made.metadata, ...types } })).toContain("layer 0: expected an indexer, got none");
  const streams = { "hy_v4.hyper_connection.count": { u32: 65 } };
  expect(await open({ metadata: { ...made.metadata, ...streams } })).toContain("expected a whole number of 2 … 64");
});

for (const name of Object.keys(newerFamilies)) {
  test(`${name}: every mistake in the program changes the logits beyond the bound`, async () => {
    const path = join(folder, `${name}.gguf`);
    await writeGguf(path, makeModel(name));
    const expected = new Float32Array(await Bun.file(join(import.meta.dir, "logits", `${name}.f32`)).arrayBuffer());
    const gguf = openGguf(path);
    const program = loadProgram(gguf);
    const errorOf = async (each: Program): Promise<number> =>
      nmse((await logitsOf(each)).slice(-expected.length), expected);
    expect(await errorOf(program)).toBeLessThan(NMSE_MAX);
    let made = 0;
    for (const mutation of [...MUTATIONS, ...OWN]) {
      const wrong = mutation.apply(program);
      if (!wrong) continue;
      made++;
      expect([mutation.name, (await errorOf(wrong)) > NMSE_MAX]).toEqual([mutation.name, true]);
    }
    expect(made).toBeGreaterThan(1);
    gguf.close();
  });
}
