/** Modules that a process imports at startup: they are most of its starting time. */
import { expect, test } from "bun:test";
import { Transpiler } from "bun";
import { join, normalize } from "node:path";

const SRC = join(import.meta.dir, "../src");

/** The sources that an entry imports at once, itself included, as paths below `src/`. */
async function earlyOf(entry: string): Promise<string[]> {
  const transpiler = new Transpiler({ loader: "ts" });
  const found = new Set([entry]);
  for (const path of found) {
    for (const { path: from, kind } of transpiler.scanImports(await Bun.file(join(SRC, path)).text())) {
      if (kind === "import-statement" && from.endsWith(".ts") && from.startsWith("."))
        found.add(normalize(join(path, "..", from)));
    }
  }
  return [...found].filter((path) => !path.startsWith("..")); // kernels
}

const LATE = [
  "engine/(architectures|formats/(gguf|quant)|vision|text/(tokenizer|template/(go|jinja)))/",
  "runtime/parse/index", // formats of tool calls
  "library/(create/(?!library)|registry/(?!registry|address|key))",
  "engine/(backends/offload|program/(describe|split))",
];

test("a server starts without importing readers of model files, templates, images and answers", async () => {
  const early = await earlyOf("cli/serve.ts");
  expect(early).toContain("server/routes/show.ts");
  const late = new RegExp(`^(${LATE.join("|")})`);
  expect(early.filter((path) => late.test(path))).toEqual([]);
});

test("a server starts without importing the other commands", async () => {
  const early = await earlyOf("cli/command-line.ts");
  expect(early).toContain("cli/usage.ts");
  const others = /^cli\/(index|hooks|(client|commands)\/.*)\.ts$/;
  expect(early.filter((path) => others.test(path))).toEqual([]);
});

test("a runner starts without importing image encoders", async () => {
  const early = await earlyOf("engine/runner/process.ts");
  expect(early).toContain("engine/architectures/index.ts");
  expect(early.filter((path) => path.startsWith("engine/vision/projectors/"))).toEqual([]);
});
