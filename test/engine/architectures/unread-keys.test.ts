/** Unknown keys about attention and rotation: refused if their values have an effect. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf, type WriteValue } from "../../../src/engine/formats/files/write.ts";
import { makeModel } from "./models.ts";

const folder = mkdtempSync(join(tmpdir(), "hearth-keys-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** The outcome of loading a model with additional keys. */
async function load(name: string, keys: Readonly<Record<string, WriteValue>>): Promise<string> {
  const path = join(folder, `${name}.gguf`);
  const model = makeModel(name);
  await writeGguf(path, { ...model, metadata: { ...model.metadata, ...keys } });
  const gguf = openGguf(path);
  try {
    loadProgram(gguf);
    return "loads";
  } catch (error) {
    return String((error as Error).message);
  } finally {
    gguf.close();
  }
}

const refused: readonly (readonly [string, string, WriteValue])[] = [
  ["llama", "llama.attention.sliding_window", { u32: 32 }],
  ["llama", "llama.attention.temperature_scale", { f32: 0.1 }],
  ["llama", "llama.rope.freq_scale", { f32: 0.5 }],
  ["llama", "llama.rope.scaling.yarn_log_multiplier", { f32: 0.1 }],
  ["llama", "llama.rope.dimension_sections", new Int32Array([2, 3, 3, 0])],
  ["qwen3", "qwen3.attention.recipe", "new"],
];

for (const [model, key, value] of refused) {
  test(`the key ${key} is refused by name`, async () => {
    expect(await load(model, { [key]: value })).toContain(`'${key}': '${model}' does not know it`);
  });
}

test("the key attention.causal is refused if it is no boolean", async () => {
  expect(await load("llama", { "llama.attention.causal": { u32: 0 } })).toContain("'llama.attention.causal': expected");
});

const neutral: readonly (readonly [string, Readonly<Record<string, WriteValue>>])[] = [
  ["neutral values", { "llama.attention.sliding_window": { u32: 0 }, "llama.attention.scale_by": false }],
  ["default values", { "llama.attention.causal": true, "llama.rope.scaling.yarn_ext_factor": { f32: -1 } }],
  ["a rope base of windows but no windows", { "llama.rope.freq_base_swa": { f32: 5e5 } }],
  ["widths that the tensors also have", { "llama.attention.key_length_swa": { u32: 99 } }],
  ["a note on training", { "llama.rope.scaling.finetuned": true }],
  ["sections for one kind of position", { "llama.rope.dimension_sections": new Int32Array([8, 0, 0, 0]) }],
  ["keys of other parts", { "llama.expert_recipe": "new", "llama.vision.attention.head_count": { u32: 3 } }],
];

for (const [name, keys] of neutral) {
  test(`a file with ${name} loads`, async () => expect(await load("llama", keys)).toBe("loads"));
}
