/**
 * Image encoders, and text models after pictures, on a software adapter against llama.cpp: rows among ids, three
 * positions, parts that layers add, spans. All projectors: `bun bench/archs.ts --backends webgpu`.
 */
import { beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { repairGguf } from "../../../../src/engine/formats/gguf/repair/index.ts";
import { cutProgram, layerCount, loadSplit } from "../../../../src/engine/program/split.ts";
import { goldenPath, readProjector } from "../../vision/golden.ts";
import { rowError, textErrors, TOLERANCES } from "../../vision/golden-text.ts";
import { goldenTest } from "../../../golden.ts";
import { convertOriginal, readOriginals } from "../../../library/convert/originals.ts";
import { seenBy } from "../../../library/convert/pictures.ts";
import type { BackendChild } from "../child.ts";
import { sharedWebGpu } from "./shared.ts";

let gpu: BackendChild;
beforeAll(async () => void (gpu = await sharedWebGpu()));

describe.each(["gemma3", "qwen3vl_merger", "pixtral"])("%s", (name) => {
  const bound = TOLERANCES[name]!.text;

  goldenTest(
    "gives llama.cpp's logits on the GPU",
    async () => {
      const errors = await textErrors(name, gpu.backend, { only: ["alpha"] });
      expect(Math.max(...errors.values())).toBeLessThan(bound);
      expect(errors.size).toBe(1);
    },
    60_000,
  );

  goldenTest(
    "gives llama.cpp's logits with its first layers on the CPU",
    async () => {
      const split = {
        name: "split",
        load: (program, options) => loadSplit(program, options, { front: cpuBackend, back: gpu.backend, count: 2 }),
      } satisfies typeof gpu.backend;
      const errors = await textErrors(name, split, { only: ["alpha"] });
      expect(Math.max(...errors.values())).toBeLessThan(bound);
    },
    60_000,
  );
});

/** Windows, rotations by lines and columns, gates; pictures in tiles. Others take a software adapter minutes. */
describe.each(["qwen2.5vl_merger", "pixtral", "idefics3"])("%s", (name) => {
  goldenTest(
    "gives llama.cpp's rows for a picture on the GPU",
    async () => expect(await rowError(name, gpu.backend, "alpha")).toBeLessThan(1e-10),
    60_000,
  );
});

test("the image encoder of Llama 3.2 Vision gives transformers' rows", async () => {
  const folder = await mkdtemp(join(tmpdir(), "hearth-mllama-"));
  const original = (await readOriginals())["Mllama-images"]!;
  const gguf = openGguf(await convertOriginal(folder, { name: "model", original }));
  const pictures = original.pictures!.slice(-1); // a canvas of three tiles
  const [seen] = await seenBy(gpu.backend, { gguf, program: loadProgram(gguf), pictures });
  expect(seen!.error).toBeLessThan(1e-11);
  gguf.close();
  await rm(folder, { recursive: true });
}, 60_000);

goldenTest("a model whose first layers add parts of images can be cut only after them", () => {
  const gguf = repairGguf(openGguf(goldenPath(readProjector("qwen3vl_merger").text)));
  try {
    const program = loadProgram(gguf);
    const all = layerCount(program);
    const cut = (count: number) => () => cutProgram(program, count);
    expect(cut(all - 1)).toThrow("it cannot be cut there");
    expect(cut(1)().back.steps.length).toBeGreaterThan(0);
  } finally {
    gguf.close();
  }
});
