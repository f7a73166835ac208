/** Whole models against llama.cpp: the reference files, and models made in code that need no reference data. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { existsSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { archs, loadProgram } from "../../../../src/engine/architectures/index.ts";
import type { Backend, Program } from "../../../../src/engine/program/backend.ts";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import { missingOps } from "../../../../src/engine/backends/missing-ops.ts";
import { ops, variants } from "../../../../src/engine/backends/simd/lower.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { repairGguf } from "../../../../src/engine/formats/gguf/repair/index.ts";
import { writeGguf } from "../../../../src/engine/formats/files/write.ts";
import { likeLlamaCpp } from "../../architectures/like-llama-cpp.ts";
import { CTX_LEN, makeModel, modelNames, TOKENS } from "../../architectures/models.ts";
import { golden, goldenTest, hasGolden } from "../../../golden.ts";
import { drawn } from "../../../seed.ts";
import { differences, nmse } from "../compare.ts";
import { simdLevels, twoLevels } from "./levels.ts";

/** Float32 sums in another order than the reference's. */
const PRECISE_NMSE_MAX = 1e-5;
/** 8-bit activations. */
const DEFAULT_NMSE_MAX = 1e-2;
const GOLDEN = (
  "gemma-dense gemma2-dense gemma3-dense granite-dense granitemoe-moe llama-dense llama-moe mistral3-dense " +
  "olmo2-dense phi3-dense qwen2-dense qwen3-dense qwen3moe-moe smollm3-dense"
).split(" ");
const GOLDEN_TOKENS = Int32Array.from({ length: 32 }, (_, i) => (i * 37 + 11) % 128);

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-simd-arch-"))));
afterAll(() => rm(folder, { recursive: true }));

async function logitsOf(backend: Backend, path: string, tokens: Int32Array, precise: boolean): Promise<Float32Array> {
  const gguf = openGguf(path);
  try {
    const load = { ctxLen: CTX_LEN, slots: 2, threads: 1, cacheDir: undefined, precise };
    const session = await backend.load(likeLlamaCpp(loadProgram(gguf)), load);
    const logits = (await session.run([{ slot: 1, start: 0, tokens, logits: "all" }])).slice();
    session.close();
    return logits;
  } finally {
    gguf.close();
  }
}

/**
 * Reference models, encoders too, of which a run draws some: answers of the reference backend, which other tests
 * compare with llama.cpp's.
 */
const ALL = hasGolden
  ? ["archs", "real"].flatMap((folder) =>
      readdirSync(golden(folder))
        .filter((name) => name.endsWith(".gguf"))
        .map((name) => `${folder}/${name}`),
    )
  : [];

/** Final states of a decoder's text in two pieces, of an encoder's in one. */
async function statesOf(backend: Backend, program: Program): Promise<Float32Array> {
  const session = await backend.load(program, { ctxLen: 64, slots: 2, threads: 2, cacheDir: undefined, precise: true });
  const tokens = Int32Array.from({ length: 24 }, (_, i) => (i * 7 + 3) % 60);
  const cuts = program.logits ? [0, 9, 24] : [0, 24];
  const parts: number[] = [];
  for (const [i, start] of cuts.slice(0, -1).entries()) {
    const rows = { slot: 1, start, tokens: tokens.subarray(start, cuts[i + 1]) };
    parts.push(...(await session.states([{ ...rows, states: "all" }])));
  }
  session.close();
  return Float32Array.from(parts);
}

const references = new Map<string, Promise<Float32Array>>();
/** The reference backend's answer for a file, computed once for all levels. */
const referenceOf = (name: string, program: Program): Promise<Float32Array> => {
  const known = references.get(name) ?? statesOf(cpuBackend, program);
  references.set(name, known);
  return known;
};

const readFloats = async (path: string): Promise<Float32Array> => new Float32Array(await Bun.file(path).arrayBuffer());

describe.each(twoLevels("arch on the CPU", simdLevels))("$level", ({ backend }) => {
  for (const name of GOLDEN) {
    goldenTest(`${name} gives llama.cpp's logits, precise and with 8-bit activations`, async () => {
      const expected = await readFloats(golden(`archs/${name}.f32`));
      const path = golden(`archs/${name}.gguf`);
      const precise = await logitsOf(backend, path, GOLDEN_TOKENS, true);
      expect(nmse(precise, expected)).toBeLessThan(PRECISE_NMSE_MAX);
      const rounded = await logitsOf(backend, path, GOLDEN_TOKENS, false);
      expect(nmse(rounded, expected)).toBeLessThan(DEFAULT_NMSE_MAX);
      expect(rounded).not.toEqual(precise);
    });
  }

  for (const name of drawn("reference models on the CPU", ALL, Math.ceil(ALL.length / 4))) {
    const file = repairGguf(openGguf(golden(name)));
    const known = Object.hasOwn(archs, String(file.metadata.get("general.architecture")));
    file.close();
    if (!known) continue;
    goldenTest(`${name} gives the reference's final states`, async () => {
      const gguf = repairGguf(openGguf(golden(name)));
      const program = loadProgram(gguf);
      if (missingOps(program, { ops, variants }).length === 0) {
        const got = await statesOf(backend, program);
        const expected = await referenceOf(name, program);
        const error = nmse(got, expected);
        // Threads share the work in any order: bits that change from run to run would reveal a race.
        const changed = async (): Promise<string> =>
          `run again: ${differences(await statesOf(backend, program), got)} of ${got.length} values changed, ` +
          `of the reference ${differences(await statesOf(cpuBackend, program), expected)}`;
        expect(error, error < PRECISE_NMSE_MAX ? "" : await changed()).toBeLessThan(PRECISE_NMSE_MAX);
      }
      gguf.close();
    });
  }

  for (const name of modelNames) {
    test(`${name} gives llama.cpp's logits`, async () => {
      const path = join(folder, `${name}.gguf`);
      if (!existsSync(path)) await writeGguf(path, makeModel(name)); // levels share it
      const recorded = await readFloats(resolve(import.meta.dir, `../../architectures/logits/${name}.f32`));
      const got = await logitsOf(backend, path, TOKENS, true);
      expect(nmse(got.slice(-recorded.length), recorded)).toBeLessThan(PRECISE_NMSE_MAX);
    });
  }
});
