import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readModelArgument } from "../../../src/cli/terminal/model-argument.ts";

describe("a model's name", () => {
  test.each([
    ["qwen3:4b", "qwen3:4b"],
    [" hearth ", "hearth"],
    ["user/model:tag", "user/model:tag"],
    ["127.0.0.1:5000/library/m", "127.0.0.1:5000/library/m"],
    ["https://registry.example/ns/m:tag", "https://registry.example/ns/m:tag"],
    ["ollama.com/library/qwen3", "qwen3"],
    ["https://ollama.com/library/qwen3:4b", "qwen3:4b"],
    ["https://www.ollama.com/library/qwen3/tags?x=1#y", "qwen3"],
    ["https://ollama.com/someone/model", "someone/model"],
    ["hf.co/owner/repo", "hf.co/owner/repo"],
    ["hf.co/owner/repo:Q4_K_M", "hf.co/owner/repo:Q4_K_M"],
    ["huggingface.co/owner/repo", "hf.co/owner/repo"],
    ["https://huggingface.co/owner/repo/tree/main", "hf.co/owner/repo"],
    ["https://huggingface.co/owner/repo/blob/main/x-Q4_K_M.gguf", "hf.co/owner/repo:x-Q4_K_M.gguf"],
    ["https://huggingface.co/owner/repo/resolve/main/x.gguf?download=true", "hf.co/owner/repo:x.gguf"],
  ])("%j is %j", async (text, name) => {
    expect(await readModelArgument(text)).toEqual({ kind: "name", name });
  });

  test.each([
    ["https://ollama.com/library", "names no model: expected ollama.com/library/NAME"],
    ["https://huggingface.co/owner", "names no model: expected hf.co/OWNER/REPOSITORY"],
    ["https://example.com/files/m.gguf", "curl -LO https://example.com/files/m.gguf), then 'hearth run ./m.gguf'"],
  ])("%j is refused: %s", async (text, words) => {
    await expect(readModelArgument(text)).rejects.toThrow(words);
  });
});

describe("a path", () => {
  test.each([
    "./none.gguf",
    "../none",
    "/none/at/all",
    "~/none",
    "~\\none",
    "C:\\none.gguf",
    "C:/none.gguf",
    "none.gguf",
    "sub/none.gguf",
  ])("%s is an error that names the missing file", async (text) => {
    await expect(readModelArgument(text)).rejects.toThrow("no such file: ");
  });

  test("is a file or a folder", async () => {
    const folder = mkdtempSync(join(tmpdir(), "hearth-argument-"));
    try {
      const path = join(folder, "m.gguf");
      writeFileSync(path, "GGUF");
      expect(await readModelArgument(path)).toEqual({ kind: "path", path, isFolder: false });
      expect(await readModelArgument(`${folder}/`)).toMatchObject({ kind: "path", isFolder: true });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
