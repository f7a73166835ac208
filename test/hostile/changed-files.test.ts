/**
 * Files of loaded models that other processes truncate or overwrite: one clear error, a fresh runner, and no effect on
 * other models.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFile, truncate, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { eventually, isAlive, startHearth, type Hearth } from "../e2e/hearth.ts";
import { parseName } from "../../src/library/store/name.ts";
import { manifestPath } from "../../src/library/store/store.ts";
import { twiceAsDeep, writeEdited } from "./edited.ts";
import { installCopies } from "./soak.ts";

let hearth: Hearth;
let root = "";
let names: string[] = [];
beforeAll(async () => {
  hearth = await startHearth({ env: { HEARTH_NUM_PARALLEL: "2" } });
  root = join(hearth.home, ".hearth", "models");
  const file = join(hearth.home, "deep.gguf");
  await writeEdited(file, twiceAsDeep);
  names = await installCopies(root, file, 5);
}, 120_000);
afterAll(() => hearth.stop());

async function blobOf(name: string): Promise<string> {
  const manifest = JSON.parse(await readFile(manifestPath(root, parseName(name)), "utf8"));
  return join(root, "blobs", manifest.layers[0].digest.replace(":", "-"));
}

async function ask(model: string, num_predict = 4): Promise<{ status: number; body: Record<string, any> }> {
  const body = { model, prompt: "Once", raw: true, stream: false, options: { num_predict, temperature: 0 } };
  const reply = await hearth.post("/api/generate", body);
  return { status: reply.status, body: (await reply.json()) as Record<string, any> };
}

test.each(["cut", "written to"])(
  "after a model file was %s, the next request fails with the reason, and the one after it is answered",
  async (how) => {
    const name = names[how === "cut" ? 0 : 1]!;
    const others = await hearth.runnerPids();
    expect((await ask(name)).status).toBe(200);
    const [runner] = (await hearth.runnerPids()).filter((pid) => !others.includes(pid));
    expect(runner).toBeDefined();
    const blob = await blobOf(name);
    const whole = await readFile(blob);
    if (how === "cut") await truncate(blob, 100_000);
    else await utimes(blob, new Date(), new Date(Date.now() + 5000));
    const { status, body } = await ask(name);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(body["error"]).toMatch(/sha256-[0-9a-f]+.*: changed while the model was loaded: expected \d+ bytes of/);
    expect(await eventually(async () => !(await isAlive(runner!)))).toBe(true);
    await writeFile(blob, whole);
    expect((await ask(name)).status).toBe(200);
  },
);

test("a request that arrives while the old runner exits is answered by a new runner", async () => {
  const name = names[4]!;
  expect((await ask(name)).status).toBe(200);
  const blob = await blobOf(name);
  const whole = await readFile(blob);
  await truncate(blob, 100_000);
  expect((await ask(name)).body["error"]).toContain("changed while the model was loaded");
  await writeFile(blob, whole);
  expect((await ask(name)).body["error"]).toBeUndefined();
});

test("a model file that is truncated during an answer ends that answer with one error, and no other model's", async () => {
  const [, , other, name] = names as [string, string, string, string];
  await ask(other);
  const options = { num_predict: 100_000, temperature: 1, seed: 1 };
  const format = { type: "array", items: { type: "integer" }, minItems: 90_000 };
  const body = { model: name, prompt: "Once", raw: true, stream: true, options, format };
  const reply = await hearth.post("/api/generate", body);
  const reader = reply.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = (await reader.read()).value ?? "";
  await truncate(await blobOf(name), 4096);
  for (let next = await reader.read(); !next.done; next = await reader.read()) text += next.value;
  const last = JSON.parse(text.trim().split("\n").at(-1)!);
  expect(last.error).toContain("expected the file as it was when the model was loaded");
  expect(last.error).not.toContain("panic");
  expect((await ask(other)).status).toBe(200);
});
