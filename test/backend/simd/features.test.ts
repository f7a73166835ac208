/** What a processor has beyond the level of a library makes it faster, and changes no bit. */
import { expect, test } from "bun:test";
import { makeSimdBackend } from "../../../src/backend/host/simd.ts";
import { levelsHere } from "../../../src/backend/host/simd-library.ts";
import { missingOps } from "../../../src/backend/missing.ts";
import { ops, variants } from "../../../src/backend/simd/lower.ts";
import { conformanceCases, runCase } from "../../conformance/cases.ts";
import { differences } from "../compare.ts";

const here = new Set(levelsHere().map(({ level }) => level));
const MODE = { precise: false };
const cases = conformanceCases().filter(({ program }) => missingOps(program, { ops, variants }).length === 0);

test.skipIf(!here.has("avxvnni"))("AVX-VNNI gives the bits of AVX2 (a processor that has it)", async () => {
  const [plain, faster] = [makeSimdBackend({ level: "avx2" }), makeSimdBackend({ level: "avxvnni" })];
  for (const each of cases) {
    const [expected, got] = [await runCase(plain, each, MODE), await runCase(faster, each, MODE)];
    for (const [i, logits] of got.entries()) expect(differences(logits, expected[i]!), each.name).toBe(0);
  }
});
