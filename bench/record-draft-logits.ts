/**
 * Records llama.cpp's logits of the draft layers of the models in test/engine/architectures/draft-layers.ts, for
 * test/engine/architectures/logits/.
 *
 *   bun bench/record-draft-logits.ts LLAMA_CPP    a source folder, built in its folder `build` with the target `llama`
 *
 * Needs g++.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { writeGguf } from "../src/engine/formats/files/write.ts";
import { draftNames, makeDraftModel } from "../test/engine/architectures/draft-layers.ts";
import { TOKENS } from "../test/engine/architectures/models.ts";
import { programBeside } from "./llama-source.ts";

const [source] = process.argv.slice(2);
if (source === undefined) throw new Error("expected a folder with the source of llama.cpp");
const folder = await mkdtemp(join(tmpdir(), "hearth-draft-"));
try {
  const run = await programBeside(source, { name: "draft-rows", folder, includes: ["include", "ggml/include", "src"] });
  for (const name of draftNames) {
    const file = join(folder, `${name}.gguf`);
    await writeGguf(file, makeDraftModel(name));
    const out = resolve(import.meta.dir, `../test/engine/architectures/logits/${name}+draft.f32`);
    await run([file, out, ...Array.from(TOKENS, String)]);
  }
} finally {
  await rm(folder, { recursive: true });
}
