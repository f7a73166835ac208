/** Diffusion models against llama.cpp's logits, and proof that each mistake shows in them. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import type { Backend, Program } from "../../../src/engine/program/backend.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../src/engine/formats/files/write.ts";
import { nmse } from "../backends/compare.ts";
import { simdLevels } from "../backends/simd/levels.ts";
import { diffusionNames, makeDiffusionModel, MASK, PROMPT } from "./diffusion-models.ts";
import { MUTATIONS } from "./mutations.ts";

const NMSE_MAX = 1e-5;
const backends: readonly Backend[] = [cpuBackend, ...simdLevels.slice(0, 1).map(({ backend }) => backend)];

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-diffusion-"))));
afterAll(() => rm(folder, { recursive: true }));

async function logitsOf(backend: Backend, program: Program): Promise<Float32Array> {
  const session = await backend.load(program, {
    ctxLen: 64,
    slots: 1,
    precise: true,
    threads: 1,
    cacheDir: undefined,
  });
  const logits = (await session.run([{ slot: 0, start: 0, tokens: PROMPT, logits: "all" }])).slice();
  session.close();
  return logits;
}

for (const name of diffusionNames) {
  test(`${name} has llama.cpp's logits, and other logits with a mistake in the program`, async () => {
    const path = join(folder, `${name}.gguf`);
    await writeGguf(path, makeDiffusionModel(name));
    const expected = new Float32Array(await Bun.file(join(import.meta.dir, "logits", `${name}.f32`)).arrayBuffer());
    const gguf = openGguf(path);
    const program = loadProgram(gguf);
    expect(program.diffusion).toEqual({
      mask: MASK,
      shifts: !name.startsWith("llada"),
      blocks: name.startsWith("llada"),
    });
    for (const backend of backends) expect(nmse(await logitsOf(backend, program), expected)).toBeLessThan(NMSE_MAX);
    for (const mutation of MUTATIONS) {
      const wrong = mutation.apply(program);
      if (wrong) expect(nmse(await logitsOf(cpuBackend, wrong), expected)).toBeGreaterThan(NMSE_MAX);
    }
    gguf.close();
  });
}

test("a file without a mask token is refused", async () => {
  const path = join(folder, "no-mask.gguf");
  const { metadata, tensors } = makeDiffusionModel("dream");
  const { "tokenizer.ggml.mask_token_id": _, ...others } = metadata;
  await writeGguf(path, { metadata: others, tensors });
  const gguf = openGguf(path);
  expect(() => loadProgram(gguf)).toThrow("'tokenizer.ggml.mask_token_id': expected an id of 0 … 63, got none");
  gguf.close();
});
