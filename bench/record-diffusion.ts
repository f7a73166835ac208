/**
 * Records llama.cpp's logits and answers of the models in test/engine/architectures/diffusion-models.ts, for
 * test/engine/architectures/logits/ and test/engine/batching/diffusion-ids.json.
 *
 *   bun bench/record-diffusion.ts LLAMA_CPP    a source folder, built in its folder `build`: `llama`, `llama-common`
 *
 * Needs g++.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { writeGguf } from "../src/engine/formats/files/write.ts";
import { ANSWERED, diffusionNames, makeDiffusionModel, PROMPT } from "../test/engine/architectures/diffusion-models.ts";
import { programBeside } from "./llama-source.ts";

const [source] = process.argv.slice(2);
if (source === undefined) throw new Error("expected a folder with the source of llama.cpp");
const tests = resolve(import.meta.dir, "../test/engine");
const folder = await mkdtemp(join(tmpdir(), "hearth-diffusion-"));
try {
  const includes = ["include", "ggml/include", "common", "examples/diffusion"];
  const run = await programBeside(source, { name: "diffusion-rows", folder, includes, libraries: ["llama-common"] });
  const ids: Record<string, number[][]> = {};
  for (const name of diffusionNames) {
    const file = join(folder, `${name}.gguf`);
    await writeGguf(file, makeDiffusionModel(name));
    const out = join(folder, name);
    await run([file, out, String(ANSWERED), ...Array.from(PROMPT, String)]);
    await Bun.write(join(tests, `architectures/logits/${name}.f32`), Bun.file(`${out}.f32`));
    const all = new Int32Array(await Bun.file(`${out}.i32`).arrayBuffer());
    ids[name] = [0, 1, 2].map((way) => Array.from(all.subarray(way * ANSWERED, (way + 1) * ANSWERED)));
  }
  const lines = Object.entries(ids).map(([name, ways]) => `  ${JSON.stringify(name)}: ${JSON.stringify(ways)}`);
  await Bun.write(join(tests, "batching/diffusion-ids.json"), `{\n${lines.join(",\n")}\n}\n`);
} finally {
  await rm(folder, { recursive: true });
}
