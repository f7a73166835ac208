/** The adapters that a model is loaded with: on offer to requests, or for all of them. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import { openAdapters } from "../../../src/engine/batching/open-adapters.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { mapFile } from "../../../src/engine/formats/files/map.ts";
import { writeGguf, type WriteModel } from "../../../src/engine/formats/files/write.ts";
import type { Gguf } from "../../../src/engine/formats/gguf/gguf.ts";
import type { ByteSource } from "../../../src/engine/formats/gguf/source.ts";
import { makeAdapter } from "../architectures/adapters.ts";
import { makeModel } from "../architectures/models.ts";

const folder = mkdtempSync(join(tmpdir(), "hearth-open-adapters-"));
const paths: Record<string, string> = {};
let gguf: Gguf;
beforeAll(async () => {
  const model = makeModel("llama");
  const write = async (name: string, made: WriteModel): Promise<void> => {
    paths[name] = join(folder, name);
    await writeGguf(paths[name], made);
  };
  const options = { rank: 4, alpha: 4, seed: 1 };
  await write("base", model);
  for (const [i, name] of ["one", "two", "large"].entries()) {
    await write(name, makeAdapter(model, { ...options, seed: i, targets: /attn/ }));
  }
  await write("embedding", makeAdapter(model, { ...options, targets: /token_embd/ }));
  await write("other", makeAdapter(makeModel("qwen3"), options));
  paths["broken"] = join(folder, "broken");
  writeFileSync(paths["broken"], "GGUF but not one");
  paths["missing"] = join(folder, "missing");
  gguf = openGguf(paths["base"]!);
});
afterAll(() => {
  gguf.close();
  rmSync(folder, { recursive: true });
});

/** Names of the adapters that requests may choose, and of the adapters that apply to all. */
function open(own: readonly string[], offers: readonly string[] | undefined, backend = "simd"): object {
  const pathsOf = (names: readonly string[]): string[] => names.map((name) => paths[name]!);
  const found = openAdapters(loadProgram(gguf), gguf, {
    adapters: pathsOf(own),
    offers: offers && pathsOf(offers),
    backend: { name: backend },
    open: (path) => note(path, "read ahead"),
    openAside: (path) => note(path, "aside"),
  });
  for (const file of found.files) file.close();
  const namesOf = (all: readonly string[] | undefined): string[] | undefined =>
    all?.map((path) => path.slice(folder.length + 1));
  return { offered: namesOf(found.program.adapters), fixed: namesOf(found.fixed) };
}

/** The function that opened each file last. */
const opened = new Map<string, string>();
const note = (path: string, how: string): ByteSource => {
  opened.set(path.slice(folder.length + 1), how);
  return mapFile(path);
};

describe("a model", () => {
  test("offers its own adapters first, then the others that can be chosen", () => {
    const others = ["embedding", "other", "broken", "missing", "base", "two", "one"];
    expect(open(["one"], others)).toEqual({ offered: ["one", "two"], fixed: [] });
    expect([opened.get("one"), opened.get("two")]).toEqual(["read ahead", "aside"]);
    expect(open([], others)).toEqual({ offered: ["two", "one"], fixed: [] });
    expect(open([], ["broken"])).toEqual({ offered: undefined, fixed: [] });
  });

  test("applies its own adapters to all requests if they cannot be chosen or no choice is offered", () => {
    expect(open(["one", "embedding"], ["two"])).toEqual({ offered: undefined, fixed: ["one", "embedding"] });
    expect(open(["one"], ["two"], "onnx")).toEqual({ offered: undefined, fixed: ["one"] });
    expect(open(["one"], undefined)).toEqual({ offered: undefined, fixed: ["one"] });
  });

  test("offers small adapters of others on a GPU, where all are uploaded, and its own of any size", () => {
    truncateSync(paths["large"]!, 65 * 2 ** 20);
    expect(open([], ["large", "two"])).toEqual({ offered: ["large", "two"], fixed: [] });
    expect(open([], ["large", "two"], "webgpu")).toEqual({ offered: ["two"], fixed: [] });
    expect(open(["large"], ["two"], "webgpu")).toEqual({ offered: ["large", "two"], fixed: [] });
  });

  test("is refused for a broken adapter of its own", () => {
    for (const name of ["other", "broken", "missing", "base"]) expect(() => open([name], ["one"]), name).toThrow(name);
  });
});
