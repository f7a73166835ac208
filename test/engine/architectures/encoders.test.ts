/** Encoders against llama.cpp, on every backend: the reference files, and models made in code. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { writeGguf } from "../../../src/engine/formats/files/write.ts";
import { startOnnx } from "../backends/child.ts";
import { golden, goldenTest } from "../../golden.ts";
import { cosine, embedOn, type EmbedOptions } from "./embed-on.ts";
import { encoders, makeEncoder, RECORDED_TEXTS, wordOf } from "./encoders.ts";

const onnx = startOnnx();
let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "hearth-encoders-"));
  for (const [name, spec] of Object.entries(encoders)) await writeGguf(join(folder, `${name}.gguf`), makeEncoder(spec));
});
afterAll(async () => {
  await onnx.stop();
  await rm(folder, { recursive: true });
});

const ways: readonly (readonly [string, EmbedOptions, least: number])[] = [
  ["cpu", { backend: cpuBackend, precise: true }, 0.99999],
  ["onnx, precise", { backend: onnx.backend, precise: true }, 0.99999],
  ["onnx", { backend: onnx.backend, precise: false }, 0.9999],
];

function expectAlike(got: readonly Float32Array[], expected: readonly ArrayLike<number>[], least: number): void {
  expect(got.length).toBe(expected.length);
  for (const [i, vector] of got.entries()) {
    expect(cosine(vector, expected[i]!)).toBeGreaterThanOrEqual(least);
    expect(Math.hypot(...vector)).toBeCloseTo(1, 5);
  }
}

for (const [way, options, least] of ways) {
  describe(way, () => {
    for (const name of ["bert-mean", "bert-cls"]) {
      goldenTest(`${name} gives llama.cpp's embeddings`, async () => {
        const { input, embeddings } = await Bun.file(golden(`bert/${name}.json`)).json();
        const got = await embedOn(golden(`bert/${name}.gguf`), input, options);
        expectAlike(got, embeddings, least);
      });
    }

    for (const name of Object.keys(encoders)) {
      test(`${name}, made in code, has llama.cpp's embeddings`, async () => {
        const recorded = new Float32Array(
          await Bun.file(join(import.meta.dir, "embeddings", `${name}.f32`)).arrayBuffer(),
        );
        const dim = recorded.length / RECORDED_TEXTS.length;
        const expected = RECORDED_TEXTS.map((_, i) => recorded.subarray(i * dim, (i + 1) * dim));
        expectAlike(await embedOn(join(folder, `${name}.gguf`), RECORDED_TEXTS, options), expected, least);
      });
    }

    test("a text's embedding does not depend on the other texts of the batch", async () => {
      const path = join(folder, "nomic-mean.gguf");
      const words = fc.array(fc.nat(40).map(wordOf), { maxLength: 30 });
      const company = fc.sample(fc.array(words, { minLength: 8, maxLength: 40 }), { numRuns: 4, seed: 5 });
      for (const texts of company.map((each) => each.map((text) => text.join(" ")))) {
        const together = await embedOn(path, texts, options);
        for (const i of [0, texts.length - 1]) {
          const [alone] = await embedOn(path, [texts[i]!], options);
          expect(cosine(alone!, together[i]!)).toBeGreaterThanOrEqual(0.99999);
        }
      }
    }, 60_000);
  });
}
