/** Encoders and bidirectional decoders with sharp attention, against llama.cpp's vectors. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import type { Backend, Program } from "../../../src/engine/program/backend.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { onnxBackend } from "../../../src/engine/backends/onnx/index.ts";
import { addStates, normalized } from "../../../src/engine/batching/pooling.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf, type WriteModel } from "../../../src/engine/formats/files/write.ts";
import { nmse } from "../backends/compare.ts";
import { simdLevels } from "../backends/simd/levels.ts";
import { readEmbedders } from "./embedders.ts";
import { likeLlamaCpp } from "./like-llama-cpp.ts";
import { MUTATIONS } from "./mutations.ts";
import { makeOutline, OUTLINE_TOKENS, readOutlines } from "./outlines.ts";

const NMSE_MAX = 1e-5;
const backends: readonly Backend[] = [cpuBackend, ...simdLevels.slice(0, 1).map(({ backend }) => backend)];

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-embedders-"))));
afterAll(() => rm(folder, { recursive: true }));

async function withProgram<T>(name: string, model: WriteModel, use: (program: Program) => T | Promise<T>): Promise<T> {
  const path = join(folder, `${name}.gguf`);
  await writeGguf(path, model);
  const gguf = openGguf(path);
  try {
    return await use(likeLlamaCpp(loadProgram(gguf)));
  } finally {
    gguf.close();
  }
}

/** The mean of the states, of unit length. With `company`, in one run with another text. */
async function vectorOn(backend: Backend, program: Program, company: boolean): Promise<Float32Array> {
  const options = { ctxLen: 64, slots: 2, precise: true, threads: 1, cacheDir: undefined };
  const session = await backend.load(program, options);
  const rows = { slot: 0, start: 0, tokens: OUTLINE_TOKENS, states: "all" } as const;
  const beside = { slot: 1, start: 0, tokens: OUTLINE_TOKENS.toReversed().subarray(0, 9), states: "all" } as const;
  const states = await session.states(company ? [rows, beside] : [rows]);
  const sum = new Float64Array(program.states.dim);
  addStates(sum, states.subarray(0, OUTLINE_TOKENS.length * sum.length));
  session.close();
  return normalized(sum);
}

for (const [name, outline] of readEmbedders()) {
  test(`${name} has llama.cpp's vector, alone and in a batch, and another vector with a wrong rotation`, async () => {
    const recorded = await Bun.file(join(import.meta.dir, "embeddings", `${name}.f32`)).arrayBuffer();
    const expected = new Float32Array(recorded);
    await withProgram(name, makeOutline(name, outline), async (program) => {
      expect(program.logits).toBeUndefined();
      for (const backend of backends) {
        for (const company of [false, true]) {
          expect(nmse(await vectorOn(backend, program, company), expected)).toBeLessThan(NMSE_MAX);
        }
      }
      for (const mutation of MUTATIONS.slice(0, 2)) {
        const wrong = mutation.apply(program);
        if (wrong) expect(nmse(await vectorOn(cpuBackend, wrong, false), expected)).toBeGreaterThan(NMSE_MAX);
      }
    });
  });
}

describe("a decoder with bidirectional attention", () => {
  const outlines = readOutlines();
  const turned = (name: string): WriteModel => {
    const outline = outlines.get(name)!;
    return makeOutline(name, { ...outline, others: { ...outline.others, "attention.causal": false } });
  };
  for (const [name, why] of [
    ["gemma3-dense", "attention with a window"],
    ["deepseek2-moe", "this kind of attention"],
    ["mamba-dense", "this kind of convolution"],
    ["granitehybrid-dense", "this kind of convolution"],
    ["bailingmoe3-moe", "this kind of attention"],
    ["grok-moe", "this kind of attention"],
  ]) {
    test(`is refused with the reason if a layer cannot be bidirectional: ${name}`, async () => {
      const load = withProgram(name!, turned(name!), () => {});
      expect(load).rejects.toThrow(`attention.causal': expected true, got false: ${why} cannot be bidirectional`);
      await load.catch(() => {});
    });
  }

  test("is reported as missing by a backend without such attention", async () => {
    const { name, outline } = { name: "qwen3-two-sided", outline: readEmbedders().get("qwen3-two-sided")! };
    await withProgram(name, makeOutline(name, outline), (program) => {
      expect(onnxBackend.missing?.(program)).toContain("bidirectionalAttention: shared keys");
    });
  });
});
