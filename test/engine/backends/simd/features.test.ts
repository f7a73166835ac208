/** Features of a processor beyond its library's level make it faster, and change no bit. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FEATURES } from "../../../../kernels/simd/layout.ts";
import type { Backend, Rows } from "../../../../src/engine/program/backend.ts";
import { makeSimdBackend } from "../../../../src/engine/backends/host/simd.ts";
import { levelsHere } from "../../../../src/engine/backends/host/simd-library.ts";
import { makeNativeMemory } from "../../../../src/engine/backends/host/simd-memory.ts";
import { openKernels } from "../../../../src/engine/backends/host/simd-workers.ts";
import { missingOps } from "../../../../src/engine/backends/missing-ops.ts";
import { ops, variants } from "../../../../src/engine/backends/simd/lower.ts";
import { quants, type QuantName } from "../../../../src/engine/formats/quant/index.ts";
import { conformanceCases, runCase } from "../../../conformance/cases.ts";
import { gatedMlp, linear, makeCase, type Case } from "../../../conformance/draft.ts";
import { differences } from "../compare.ts";
import { backendOf } from "./hosts.ts";
import { withAttention } from "./keeping.ts";

const here = new Set(levelsHere().map(({ level }) => level));
const MODE = { precise: false };
const cases = conformanceCases().filter(({ program }) => missingOps(program, { ops, variants }).length === 0);

test.skipIf(!here.has("avxvnni"))(
  "AVX-VNNI gives the bits of AVX2 (a processor that has it)",
  () => expectSameBits(cases, makeSimdBackend({ level: "avx2" }), makeSimdBackend({ level: "avxvnni" })),
  60_000,
);

/** Prompts of more rows than one tile has, of few, of all between, and two at once, after decode steps. */
const prompts = (ctxLen: number): Case["batches"] => {
  const rows = (slot: number, length: number): Rows => {
    const tokens = Int32Array.from({ length }, (_, i) => (7 * i + slot) % 16);
    return { slot, start: 0, tokens, logits: "all" };
  };
  const step = (slot: number, start: number): Rows => ({ ...rows(slot, 1), start });
  return [[rows(0, ctxLen)], [rows(0, 7), rows(1, 22)], [step(0, 7), rows(1, 6), step(2, 0), rows(3, 16)]];
};
const amxCases = Object.keys(quants).flatMap((name) => {
  const quant = name as QuantName;
  const options = { dim: 256, ctxLen: 37, batches: prompts(37) };
  const ffnDim = 512 + (quants[quant].blockLen % 256); // ends with a part of a unit for shorter blocks
  return [
    makeCase(`AMX: ${quant}`, options, (draft) => gatedMlp(draft, { dim: 256, ffnDim, act: "silu", quant })),
    makeCase(`AMX: ${quant}, a part of a panel`, options, (draft) =>
      linear(draft, draft.matrix({ inDim: 256, outDim: 75, quant })),
    ),
  ];
});

/** Compares the bits of two backends. */
async function expectSameBits(all: readonly Case[], plain: Backend, faster: Backend): Promise<void> {
  for (const each of all) {
    const [expected, got] = [await runCase(plain, each, MODE), await runCase(faster, each, MODE)];
    for (const [i, logits] of got.entries()) expect(differences(logits, expected[i]!), each.name).toBe(0);
  }
}

test.skipIf(!here.has("amx"))(
  "AMX gives the bits of AVX-512 (a processor that has it)",
  () => expectSameBits([...cases, ...amxCases], makeSimdBackend({ level: "vnni" }), makeSimdBackend({ level: "amx" })),
  60_000,
);

const canBuild = ["clang-19", "ld.lld-19"].every((name) => Bun.which(name) !== null);
test.skipIf(!here.has("vnni") || !canBuild || process.platform !== "linux")(
  "AMX, emulated in C, gives the bits of AVX-512",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "hearth-amx-"));
    try {
      const [name, flags] = ["linux-x64-vnni", "-DAMX_EMULATED=1"];
      const script = join(import.meta.dir, "../../../../kernels/simd/build.sh");
      const build = Bun.spawnSync([script, folder, name], { env: { ...process.env, KERNEL_FLAGS: flags } });
      expect(build.stderr.toString()).toBe("");
      const kernels = openKernels(join(folder, `${name}.so`));
      const withFeatures = (features: number): Backend =>
        backendOf({ level: "vnni", features, panelRows: 32 }, makeNativeMemory, (header) => kernels.run(header, 0));
      const all = [...cases.filter(({ name }) => /^(linear|experts)/.test(name)), ...amxCases];
      await expectSameBits(all, withFeatures(0), withFeatures(FEATURES.amx));
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
  120_000,
);

const plainLevels = levelsHere().filter(({ file }, i, all) => all.findLastIndex((each) => each.file === file) === i);

test.skipIf(process.arch !== "x64").each(plainLevels)(
  "$level: products in alternating halves of rows give the bits of rows in order",
  async ({ level, file, panelRows }) => {
    const kernels = openKernels(file);
    const withFeatures = (features: number): Backend =>
      backendOf({ level, features, panelRows }, makeNativeMemory, (header) => kernels.run(header, 0));
    const one = (start: number) => [{ slot: 0, start, tokens: Int32Array.of(7 * start + 1), logits: "last" as const }];
    // A prompt whose rows are all wanted: it uses no other feature.
    const prompt = Int32Array.from({ length: 12 }, (_, i) => (5 * i + 2) % 16);
    const batches = [one(0), one(1), one(2), [{ slot: 0, start: 3, tokens: prompt, logits: "all" as const }]];
    for (const quant of Object.keys(quants) as QuantName[]) {
      // Rows of two turns and a part of one, which ends with a part of a unit for shorter blocks.
      const ffnDim = 2304 + (quants[quant].blockLen % 256);
      const drafts = [
        makeCase(`halves: ${quant}`, { dim: 256, batches }, (draft) =>
          gatedMlp(draft, { dim: 256, ffnDim, act: "silu", quant }),
        ),
        makeCase(`halves: ${quant}, an odd number of rows`, { dim: 256, batches }, (draft) =>
          linear(draft, draft.matrix({ inDim: 256, outDim: 519, quant })),
        ),
      ];
      for (const draft of drafts) {
        const one = { ...draft, program: withAttention(draft.program) };
        const expected = await runCase(withFeatures(0), one, MODE);
        const got = await runCase(withFeatures(FEATURES.halves), one, MODE);
        for (const [i, logits] of got.entries()) expect(differences(logits, expected[i]!), one.name).toBe(0);
      }
    }
  },
  120_000,
);
