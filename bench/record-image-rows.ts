/**
 * Records llama.cpp's rows of the pictures of test/engine/vision/resampler-model.ts, for test/engine/vision/rows/.
 *
 *   bun bench/record-image-rows.ts LLAMA_CPP    a source folder, built in its folder `build` with the target `mtmd`
 *
 * Needs g++.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { writeGguf } from "../src/engine/formats/files/write.ts";
import { makeResampler, pictureOf, RESAMPLED } from "../test/engine/vision/resampler-model.ts";
import { programBeside } from "./llama-source.ts";

const [source] = process.argv.slice(2);
if (source === undefined) throw new Error("expected a folder with the source of llama.cpp");
const folder = await mkdtemp(join(tmpdir(), "hearth-rows-"));
try {
  const run = await programBeside(source, {
    name: "image-rows",
    folder,
    includes: ["include", "ggml/include", "tools/mtmd", "vendor"],
    libraries: ["mtmd"],
  });
  const projector = join(folder, "resampler.gguf");
  await writeGguf(projector, makeResampler(3));
  const pictures: string[] = [];
  for (const [name, size] of Object.entries(RESAMPLED)) {
    const path = join(folder, `${name}.rgb`);
    await Bun.write(path, pictureOf(size).data);
    pictures.push(`${size.width}x${size.height}=${path}`);
  }
  const out = resolve(import.meta.dir, "../test/engine/vision/rows/resampler.bin");
  await run([projector, out, ...pictures]);
} finally {
  await rm(folder, { recursive: true });
}
