/**
 * Limits for a decode step on a GPU, for every architecture: dispatches per layer, and bytes relative to the weights'.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../../src/engine/formats/files/write.ts";
import { makeModel, specs } from "../../architectures/models.ts";
import { decodeStepOf } from "./decode-step.ts";

/** Experts beside an MLP over a long context need most: one dispatch chooses the experts for all workgroups. */
const DISPATCHES_MAX = 9;
/** Embedding, selecting rows of two results, last norm, output, and processing of logits. */
const OUTSIDE_MAX = 6;
const TRAFFIC_MAX = 1.15;
const EMBEDDED = resolve(import.meta.dir, "../../../../models/hearth/hearth.gguf");

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-decode-step-"))));
afterAll(() => rm(folder, { recursive: true }));

function stepOf(path: string, position: number) {
  const gguf = openGguf(path);
  try {
    const program = loadProgram(gguf);
    return { nLayers: program.shape.nLayers, ...decodeStepOf(program, { ctxLen: 4096, position }) };
  } finally {
    gguf.close();
  }
}

describe("every architecture", () => {
  for (const name of Object.keys(specs)) {
    test(`${name}: at most nine dispatches a layer, and little beside the weights is moved`, async () => {
      const path = join(folder, `${name}.gguf`);
      await writeGguf(path, makeModel(name));
      for (const position of [20, 4000]) {
        const { nLayers, dispatches, layers } = stepOf(path, position);
        expect(layers.length).toBe(nLayers - 1);
        for (const kernels of layers) expect(kernels.slice(DISPATCHES_MAX)).toEqual([]);
        expect(dispatches.length).toBeLessThanOrEqual(DISPATCHES_MAX * nLayers + OUTSIDE_MAX);
      }
      const { moved, weights } = stepOf(path, 20);
      expect(moved / weights).toBeGreaterThan(1);
      expect(moved / weights).toBeLessThan(TRAFFIC_MAX);
    });
  }
});

test("the embedded model: little beside its weights is moved", () => {
  const { layers, moved, weights } = stepOf(EMBEDDED, 100);
  expect(layers[0]!.length).toBeLessThanOrEqual(DISPATCHES_MAX);
  expect(moved / weights).toBeGreaterThan(1);
  expect(moved / weights).toBeLessThan(TRAFFIC_MAX);
});

test.each([
  ["llama", 5],
  ["qwen3moe", 7],
])("%s: at most %i dispatches a layer while a context is short", async (name, most) => {
  const path = join(folder, `short-${name}.gguf`);
  await writeGguf(path, makeModel(name));
  const { layers } = stepOf(path, 20);
  expect(layers.length).toBeGreaterThan(0);
  for (const kernels of layers) expect(kernels.slice(most)).toEqual([]);
});
