/** MiniCPM-V's encoder: pictures in slices, and rows against llama.cpp's (bench/record-image-rows.ts). */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import type { Backend } from "../../../src/engine/program/backend.ts";
import { simdBackend } from "../../../src/engine/backends/host/simd.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf, type WriteModel } from "../../../src/engine/formats/files/write.ts";
import { openImageEncoder, type ImageEncoder, type ImagePart } from "../../../src/engine/vision/index.ts";
import { cutOf } from "../../../src/engine/vision/slices.ts";
import { nmse } from "../backends/compare.ts";
import { makeResampler, pictureOf, RESAMPLED, RESAMPLED_DIM } from "./resampler-model.ts";

const QUERIES = 6;
/** llama.cpp rounds patches and GELU to half precision: see its `conv_2d` and its table of GELU. */
const NMSE_MAX = 1e-5;

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-resampler-"))));
afterAll(() => rm(folder, { recursive: true }));

/** One part of a picture: its pixels in llama.cpp's layout, and its rows. */
interface Recorded {
  readonly width: number;
  readonly height: number;
  readonly pixels: Float32Array;
  readonly rows: Float32Array;
}

function readRecorded(): Recorded[][] {
  const bytes = readFileSync(join(import.meta.dir, "rows/resampler.bin"));
  let at = 0;
  const int = (): number => bytes.readInt32LE((at += 4) - 4);
  const floats = (count: number): Float32Array =>
    Float32Array.from({ length: count }, () => bytes.readFloatLE((at += 4) - 4));
  return Object.keys(RESAMPLED).map(() =>
    Array.from({ length: int() }, () => {
      const [width, height, values] = [int(), int(), int()];
      return { width, height, pixels: floats(3 * width * height), rows: floats(values) };
    }),
  );
}

async function withEncoder<T>(
  model: WriteModel,
  use: (encoder: ImageEncoder) => T | Promise<T>,
  backend: Backend = cpuBackend,
): Promise<T> {
  const path = join(folder, "resampler.gguf");
  await writeGguf(path, model);
  const gguf = openGguf(path);
  try {
    const encoder = await openImageEncoder(gguf, { backend, threads: 1, text: undefined, signal: undefined });
    const result = await use(encoder);
    encoder.close();
    return result;
  } finally {
    gguf.close();
  }
}

/** Splits the pixels into three planes, line by line. */
function planes({ width, height, pixels }: Recorded): Float32Array {
  const plane = width * height;
  return Float32Array.from({ length: 3 * plane }, (_, i) => pixels[(i % plane) * 3 + Math.floor(i / plane)]!);
}

for (const [name, backend] of Object.entries({ cpu: cpuBackend, simd: simdBackend })) {
  test(`slices of a picture have the reference's pixels and rows on ${name}`, async () => {
    const recorded = readRecorded();
    await withEncoder(
      makeResampler(3),
      async (encoder) => {
        expect(encoder.dim).toBe(RESAMPLED_DIM);
        for (const [i, size] of Object.values(RESAMPLED).entries()) {
          const picture = pictureOf(size);
          expect(encoder.pixels(picture)).toEqual(
            recorded[i]!.map((part) => ({ width: part.width, height: part.height, values: planes(part) })),
          );
          const rows = (await encoder.encode(picture)).flatMap((part) => (part.kind === "rows" ? [part.vectors] : []));
          expect(rows.map(({ length }) => length)).toEqual(recorded[i]!.map(() => QUERIES * RESAMPLED_DIM));
          for (const [at, part] of recorded[i]!.entries()) expect(nmse(rows[at]!, part.rows)).toBeLessThan(NMSE_MAX);
        }
      },
      backend,
    );
  });
}

describe("in a prompt", () => {
  const textOf = (parts: readonly ImagePart<{ rows: number }>[]): string =>
    parts.map((part) => (part.kind === "rows" ? `[${part.rows}]` : part.text)).join("");

  test("version 3 marks slices, and ends lines of them with a line feed", () =>
    withEncoder(makeResampler(3), (encoder) => {
      const slice = "<slice>[6]</slice>";
      expect(textOf(encoder.layout(RESAMPLED.small))).toBe("<image>[6]</image>");
      expect(textOf(encoder.layout(RESAMPLED.wide))).toBe(`<image>[6]</image>${slice}${slice}${slice}`);
      expect(textOf(encoder.layout(RESAMPLED.tall))).toBe(`<image>[6]</image>${slice}\n${slice}`);
    }));

  test("version 2 marks slices as images, with slice marks around all", () =>
    withEncoder(makeResampler(2), (encoder) => {
      const image = "<image>[6]</image>";
      expect(textOf(encoder.layout(RESAMPLED.tall))).toBe(`${image}<slice>${image}\n${image}</slice>`);
      expect(textOf(encoder.layout(RESAMPLED.small))).toBe(image);
    }));
});

test("grids equal llama.cpp's", () => {
  const rule = { side: 24, patch: 4, patchesMax: 100 };
  for (const { grid, ...size } of Object.values(RESAMPLED)) {
    const cut = cutOf(size, rule);
    expect([cut.grid.width, cut.grid.height]).toEqual([...grid]);
  }
  expect(cutOf({ width: 90, height: 100 }, rule)).toEqual({
    whole: { width: 24, height: 24 },
    grid: { width: 3, height: 3 },
    slice: { width: 24, height: 24 },
  });
});

describe("the resampler refuses", () => {
  const refused = (more: WriteModel["metadata"], without?: string): Promise<unknown> => {
    const { metadata, tensors } = makeResampler(3);
    const model = { metadata: { ...metadata, ...more }, tensors: tensors.filter(({ name }) => name !== without) };
    return withEncoder(model, () => "loaded").catch(({ message }: Error) => message);
  };
  test("an unknown version", async () => {
    expect(await refused({ "clip.minicpmv_version": { i32: 7 } })).toContain(
      "'clip.minicpmv_version': expected one of 2, 3, 4, 5, 6, 100045, got 7",
    );
  });
  test("a number of queries that differs from the file's", async () => {
    expect(await refused({ "clip.minicpmv_query_num": { u32: 7 } })).toContain("tensor 'resampler.query'");
  });
  test("a file without its queries", async () => {
    expect(await refused({}, "resampler.query")).toContain("tensor 'resampler.query': expected (256, 6), got none");
  });
  test("a picture so narrow that it has too many patches", () => {
    const cut = (): unknown => cutOf({ width: 200_000, height: 1 }, { side: 448, patch: 14, patchesMax: 4096 });
    expect(cut).toThrow("image of 200000×1: expected at most 4096 patches, got 14286: it is too narrow");
  });
});
