/** `hearth run` with files and pasted arguments. */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { runHearth, startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(60_000);

const GGUF = resolve(import.meta.dir, "../../models/hearth/hearth.gguf");
const home = mkdtempSync(join(tmpdir(), "hearth-run-file-"));
let hearth: Hearth;
beforeAll(async () => void (hearth = await startHearth()));
afterAll(async () => {
  await hearth.stop();
  rmSync(home, { recursive: true });
});

const run = (...args: string[]): ReturnType<typeof runHearth> =>
  runHearth(args, { home, env: { HEARTH_HOST: new URL(hearth.url).host } });

test("run makes a model of a file once, and finds the same model the next time", async () => {
  const path = join(home, "My Model-Q4_K_M.gguf");
  copyFileSync(GGUF, path);
  const first = await run("run", path, "Hello!");
  expect(first.code).toBe(0);
  expect(first.stdout.trim().length).toBeGreaterThan(3);
  const [, name = ""] = /making the model '(my-model-q4_k_m:file-[0-9a-f]{8})' of /.exec(first.stderr) ?? [];
  expect((await run("list")).stdout).toContain(name);
  const again = await run("run", path, "Hello!");
  expect([again.code, again.stderr]).toEqual([0, "hashing My Model-Q4_K_M.gguf\n"]);
  await run("rm", name);
});

test("run makes a model of a folder of weights", async () => {
  mkdirSync(join(home, "folder"));
  copyFileSync(GGUF, join(home, "folder/weights.gguf"));
  const { code, stderr } = await run("run", join(home, "folder"), "Hello!");
  expect([code, stderr]).toEqual([0, expect.stringMatching(/making the model 'folder:file-[0-9a-f]{8}' of /)]);
});

test("run refuses a broken file, an empty folder and a missing path, and makes no model", async () => {
  const path = join(home, "broken.gguf");
  writeFileSync(path, "GGUF, it says");
  const { code, stderr } = await run("run", path, "hi");
  expect([code, stderr]).toEqual([1, expect.stringMatching(/\nError: broken\.gguf: .+\n$/)]);
  expect((await run("list")).stdout).not.toContain("broken");
  mkdirSync(join(home, "empty"));
  expect((await run("run", join(home, "empty"), "hi")).stderr).toContain(
    "Error: no Modelfile or safetensors files found",
  );
  expect((await run("run", join(home, "none.gguf"), "hi")).stderr).toBe(
    `Error: no such file: ${join(home, "none.gguf")}\n`,
  );
});

test("run takes the command line of ollama and the address of a model's page", async () => {
  expect((await run("run", "ollama", "run", "hearth", "Hello!")).code).toBe(0);
  expect((await run("run", "https://ollama.com/library/hearth", "Hello!")).code).toBe(0);
});

test("pull of a file says how to run it", async () => {
  expect((await run("pull", GGUF)).stderr).toBe(
    `Error: '${GGUF}' is here already: 'hearth run ${GGUF}' runs it, and a Modelfile names it (FROM ${GGUF})\n`,
  );
});
