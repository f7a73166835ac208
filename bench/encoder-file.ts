/** Random-weight encoders, shaped like BERT base (12 layers of 768) and MiniLM (6 of 384), for measuring speed. */
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { writeGguf } from "../src/engine/formats/files/write.ts";
import { makeEncoder, type EncoderSpec } from "../test/engine/architectures/encoders.ts";

const common = { vocabSize: 30_522, ctxLen: 512, pooling: 1, quant: "f16" } as const;
const SHAPES = {
  base: { ...common, arch: "bert", dim: 768, nLayers: 12, nHeads: 12, ffnDim: 3072 },
  small: { ...common, arch: "bert", dim: 384, nLayers: 6, nHeads: 12, ffnDim: 1536 },
  nomic: { ...common, arch: "nomic-bert", dim: 768, nLayers: 12, nHeads: 12, ffnDim: 3072 },
} as const satisfies Record<string, EncoderSpec>;

/** Writes the file if it is missing; returns its path. */
export async function ensureEncoder(
  shape: string,
  quant: string,
  folder = join(import.meta.dir, "out"),
): Promise<string> {
  if (!Object.hasOwn(SHAPES, shape)) throw new Error(`shape '${shape}': expected one of ${Object.keys(SHAPES)}`);
  const path = join(folder, `random-${shape}-${quant}.gguf`);
  if (existsSync(path)) return path;
  mkdirSync(folder, { recursive: true });
  const spec = { ...SHAPES[shape as keyof typeof SHAPES], quant: quant as EncoderSpec["quant"] };
  await writeGguf(path, makeEncoder(spec));
  return path;
}
