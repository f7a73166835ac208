/** Features of a processor beyond its library's level make it faster, and change no bit. */
import { expect, test } from "bun:test";
import { FEATURES } from "../../../../kernels/simd/layout.ts";
import type { Backend } from "../../../../src/engine/program/backend.ts";
import { makeSimdBackend } from "../../../../src/engine/backends/host/simd.ts";
import { levelsHere } from "../../../../src/engine/backends/host/simd-library.ts";
import { makeNativeMemory } from "../../../../src/engine/backends/host/simd-memory.ts";
import { openKernels } from "../../../../src/engine/backends/host/simd-workers.ts";
import { missingOps } from "../../../../src/engine/backends/missing-ops.ts";
import { ops, variants } from "../../../../src/engine/backends/simd/lower.ts";
import { quants, type QuantName } from "../../../../src/engine/formats/quant/index.ts";
import { conformanceCases, runCase } from "../../../conformance/cases.ts";
import { gatedMlp, linear, makeCase } from "../../../conformance/draft.ts";
import { differences } from "../compare.ts";
import { backendOf } from "./hosts.ts";
import { withAttention } from "./keeping.ts";

const here = new Set(levelsHere().map(({ level }) => level));
const MODE = { precise: false };
const cases = conformanceCases().filter(({ program }) => missingOps(program, { ops, variants }).length === 0);

test.skipIf(!here.has("avxvnni"))(
  "AVX-VNNI gives the bits of AVX2 (a processor that has it)",
  async () => {
    const [plain, faster] = [makeSimdBackend({ level: "avx2" }), makeSimdBackend({ level: "avxvnni" })];
    for (const each of cases) {
      const [expected, got] = [await runCase(plain, each, MODE), await runCase(faster, each, MODE)];
      for (const [i, logits] of got.entries()) expect(differences(logits, expected[i]!), each.name).toBe(0);
    }
  },
  60_000,
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
