/**
 * Dispatches per layer, and bytes relative to the weights', of a decode step, for every architecture, counted from tiny
 * models made in code: needs no GPU.
 *
 *   bun bench/gpu-layers.ts [--at 0]
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { loadProgram } from "../src/engine/architectures/index.ts";
import { openGguf } from "../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../src/engine/formats/files/write.ts";
import { makeModel, specs } from "../test/engine/architectures/models.ts";
import { decodeStepOf } from "../test/engine/backends/webgpu/decode-step.ts";

const { values: flags } = parseArgs({ options: { at: { type: "string", default: "0" } } });
const position = Number(flags.at);
const folder = await mkdtemp(join(tmpdir(), "hearth-gpu-layers-"));
try {
  const table: Record<string, Record<string, string | number>> = {};
  for (const name of Object.keys(specs)) {
    const path = join(folder, `${name}.gguf`);
    await writeGguf(path, makeModel(name));
    const gguf = openGguf(path);
    const { layers, moved, weights } = decodeStepOf(loadProgram(gguf), { ctxLen: position + 1, position });
    gguf.close();
    const most = layers.toSorted((a, b) => b.length - a.length)[0]!; // every spec has at least two layers
    const cost = { dispatches: most.length, "bytes over weights'": Number((moved / weights).toFixed(3)) };
    table[name] = { ...cost, layer: most.join(" ") };
  }
  console.table(table);
} finally {
  await rm(folder, { recursive: true });
}
