import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { modelFiles, resolvePath } from "../../../src/cli/client/model-files.ts";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "hearth-files-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function make(...names: string[]): void {
  for (const name of names) {
    mkdirSync(join(folder, name, ".."), { recursive: true });
    writeFileSync(join(folder, name), name);
  }
}

const names = async (): Promise<string[]> => (await modelFiles(folder)).map((file) => file.name);

test("a folder of safetensors is sent with its configuration and tokenizer, and no other file", async () => {
  make("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "config.json", "1_Pooling/config.json");
  make("tokenizer.model", "chat_template.jinja", "notes.txt", "other.gguf");
  expect(await names()).toEqual([
    "model-00001-of-00002.safetensors",
    "model-00002-of-00002.safetensors",
    "1_Pooling/config.json",
    "chat_template.jinja",
    "config.json",
    "tokenizer.model",
  ]);
});

test("an adapter is sent with its configuration", async () => {
  make("adapter_model.safetensors", "adapter_config.json", "README.md");
  expect(await names()).toEqual(["adapter_model.safetensors", "adapter_config.json"]);
});

test("a GGUF is sent alone", async () => {
  make("a.gguf", "config.json");
  expect(await names()).toEqual(["a.gguf"]);
});

test("a folder without weights is an error that names it", async () => {
  make("config.json");
  await expect(modelFiles(folder)).rejects.toThrow(`no Modelfile or safetensors files found in '${folder}'`);
});

test("a link that leads out of the folder is refused", async () => {
  symlinkSync("/etc/hostname", join(folder, "model.safetensors"));
  await expect(modelFiles(folder)).rejects.toThrow("insecure path: model.safetensors");
});

test("links of Hugging Face's cache are followed to the blobs beside its snapshots only", async () => {
  make("models--a--b/blobs/0a", "models--c--d/blobs/0b");
  const snapshot = join(folder, "models--a--b/snapshots/9f");
  mkdirSync(snapshot, { recursive: true });
  symlinkSync("../../blobs/0a", join(snapshot, "model.safetensors"));
  expect(await modelFiles(snapshot)).toEqual([
    { path: join(realpathSync(folder), "models--a--b/blobs/0a"), name: "model.safetensors" },
  ]);
  symlinkSync("../../../models--c--d/blobs/0b", join(snapshot, "config.json"));
  await expect(modelFiles(snapshot)).rejects.toThrow("insecure path: config.json");
});

test("paths are relative to the Modelfile, and ~ is the home folder", () => {
  expect(resolvePath("a/b.gguf", "/models")).toBe("/models/a/b.gguf");
  expect(resolvePath("/a.gguf", "/models")).toBe("/a.gguf");
  expect(resolvePath("~/a.gguf", "/models")).toBe(join(homedir(), "a.gguf"));
  expect(resolvePath(String.raw`~\a.gguf`, "/models")).toBe(join(homedir(), String.raw`\a.gguf`)); // as on Windows
});
