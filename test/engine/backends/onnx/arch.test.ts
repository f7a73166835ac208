/** Whole models against llama.cpp: the reference files, and models made in code that need no reference data. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import { withoutMemory } from "../../../../src/engine/program/memory.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../../src/engine/formats/files/write.ts";
import { likeLlamaCpp } from "../../architectures/like-llama-cpp.ts";
import { CTX_LEN, makeModel, specs, TOKENS } from "../../architectures/models.ts";
import { golden, goldenTest } from "../../../golden.ts";
import { startOnnx } from "../child.ts";
import { nmse } from "../compare.ts";

/** Float32 sums in another order than the reference's. */
const PRECISE_NMSE_MAX = 1e-5;
/** 8-bit activations, and float weights rounded to 8 bits. */
const DEFAULT_NMSE_MAX = 1e-2;
const GOLDEN = (
  "gemma-dense gemma2-dense gemma3-dense granite-dense granitemoe-moe llama-dense llama-moe mistral3-dense " +
  "olmo2-dense phi3-dense qwen2-dense qwen3-dense qwen3moe-moe smollm3-dense"
).split(" ");
const GOLDEN_TOKENS = Int32Array.from({ length: 32 }, (_, i) => (i * 37 + 11) % 128);

const onnx = startOnnx();
let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-onnx-arch-"))));
afterAll(async () => {
  await onnx.stop();
  await rm(folder, { recursive: true });
});

async function logitsOf(path: string, tokens: Int32Array, options: { precise: boolean }): Promise<Float32Array> {
  const gguf = openGguf(path);
  try {
    const load = { ctxLen: CTX_LEN, slots: 2, threads: 1, cacheDir: undefined, ...options };
    const session = await onnx.backend.load(withoutMemory(likeLlamaCpp(loadProgram(gguf))), load);
    const logits = await session.run([{ slot: 1, start: 0, tokens, logits: "all" }]);
    session.close();
    return logits;
  } finally {
    gguf.close();
  }
}

const readFloats = async (path: string): Promise<Float32Array> => new Float32Array(await Bun.file(path).arrayBuffer());

describe("the reference models", () => {
  for (const name of GOLDEN) {
    goldenTest(`${name} gives llama.cpp's logits, precise and with 8-bit activations`, async () => {
      const expected = await readFloats(golden(`archs/${name}.f32`));
      const path = golden(`archs/${name}.gguf`);
      const precise = await logitsOf(path, GOLDEN_TOKENS, { precise: true });
      expect(nmse(precise, expected)).toBeLessThan(PRECISE_NMSE_MAX);
      const rounded = await logitsOf(path, GOLDEN_TOKENS, { precise: false });
      expect(nmse(rounded, expected)).toBeLessThan(DEFAULT_NMSE_MAX);
      expect(rounded).not.toEqual(precise);
    });
  }
});

describe("models made in code", () => {
  for (const name of Object.keys(specs)) {
    test(`${name} gives llama.cpp's logits`, async () => {
      const path = join(folder, `${name}.gguf`);
      await writeGguf(path, makeModel(name));
      const recorded = await readFloats(resolve(import.meta.dir, `../../architectures/logits/${name}.f32`));
      const got = await logitsOf(path, TOKENS, { precise: true });
      expect(nmse(got.slice(-recorded.length), recorded)).toBeLessThan(PRECISE_NMSE_MAX);
    });
  }
});
