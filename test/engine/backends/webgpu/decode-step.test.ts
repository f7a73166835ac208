/**
 * Limits for a decode step on a GPU, for every architecture: dispatches per layer, and bytes relative to the weights'.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { modelOf, SHAPES } from "../../../../bench/make-model.ts";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { encodeHeader, writeGguf } from "../../../../src/engine/formats/files/write.ts";
import { makeModel, specs } from "../../architectures/models.ts";
import { decodeStepOf } from "./decode-step.ts";

/** Experts parallel to an MLP over a long context need most: one dispatch chooses the experts for all workgroups. */
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
    test(`${name}: a step takes at most nine dispatches a layer and moves less than 1.15 times the weights' bytes`, async () => {
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

test("the embedded model: a step moves less than 1.15 times the weights' bytes", () => {
  const { layers, moved, weights } = stepOf(EMBEDDED, 100);
  expect(layers[0]!.length).toBeLessThanOrEqual(DISPATCHES_MAX);
  expect(moved / weights).toBeGreaterThan(1);
  expect(moved / weights).toBeLessThan(TRAFFIC_MAX);
});

test("an 8B model in Q4_K_M: a token moves at most 1.02 times the bytes of the file", async () => {
  const path = join(folder, "8b.gguf");
  const { header, alignment, byteLengths } = encodeHeader(modelOf("q4_k_m", { shape: SHAPES["8b"], name: "8b" }));
  const padded = byteLengths.map((length) => Math.ceil(length / alignment) * alignment);
  await writeFile(path, header);
  await truncate(path, header.length + sum(padded)); // zeros that take no disk
  const { nLayers, dispatches, layers, moved } = stepOf(path, 20);
  expect(sum(byteLengths)).toBeGreaterThan(4.4e9);
  expect(moved / sum(byteLengths)).toBeGreaterThan(1);
  expect(moved / sum(byteLengths)).toBeLessThan(1.02);
  for (const kernels of layers) expect(kernels.slice(5)).toEqual([]);
  expect(dispatches.length).toBeLessThanOrEqual(5 * nLayers + OUTSIDE_MAX);
});

const sum = (values: readonly number[]): number => values.reduce((total, each) => total + each, 0);

test.each([
  ["llama", 5],
  ["qwen3moe", 7],
])("%s: a step takes at most %i dispatches a layer while its context is short", async (name, most) => {
  const path = join(folder, `short-${name}.gguf`);
  await writeGguf(path, makeModel(name));
  const { layers } = stepOf(path, 20);
  expect(layers.length).toBeGreaterThan(0);
  for (const kernels of layers) expect(kernels.slice(most)).toEqual([]);
});
