/** The TypeScript of docs/clients.md and README.md runs as printed, except for the address and the model. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { threeValues } from "../server/fakes.ts";
import { makeHarness, type Harness } from "../server/harness.ts";
import { scripted } from "./scripted.ts";

const ROOT = join(import.meta.dir, "../..");
let harness: Harness;
let url: string;
beforeAll(async () => {
  harness = await makeHarness();
  ({ url } = harness.listen());
  harness.runtime.script = scripted;
  harness.runtime.embedding = threeValues;
});
afterAll(() => harness.close());

const blocksOf = (path: string): string[] =>
  [...readFileSync(join(ROOT, path), "utf8").matchAll(/^```ts\n([\s\S]*?)^```/gm)].map(([, code]) => code!);

describe.each(["docs/clients.md", "README.md"])("%s", (path) => {
  test.each(blocksOf(path).map((code) => [/from "([^"]+)"/.exec(code)?.[1] ?? "no import", code]))(
    "the example with %s prints an answer",
    async (_, code) => {
      const here = code
        .replaceAll("http://127.0.0.1:11434", url)
        .replace(
          'import ollama from "ollama"',
          `import { Ollama } from "ollama"; const ollama = new Ollama({ host: "${url}" })`,
        )
        .replaceAll(/model: "[^"]+"/g, 'model: "m:latest"');
      const child = Bun.spawn([process.execPath, "-e", here], { cwd: ROOT, stdout: "pipe", stderr: "pipe" });
      const [out, problems, status] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
      expect([status, problems]).toEqual([0, ""]);
      expect(out.trim()).not.toBe("");
    },
    60_000,
  );
});
