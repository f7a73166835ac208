/** The GPU backend without an installed driver: with the packages of `bun install`. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, mkdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fillOnce } from "../../src/engine/backends/host/software-driver.ts";
import { nmse } from "../engine/backends/compare.ts";
import { runHearth, startHearth } from "./hearth.ts";

setDefaultTimeout(120_000); // a CPU that plays a GPU

const MODEL = resolve(import.meta.dir, "../../models/hearth/hearth.gguf");
let home = "";
beforeAll(async () => void (home = await mkdtemp(join(tmpdir(), "hearth-anywhere-"))));
afterAll(() => rm(home, { recursive: true }));

async function logits(...args: string[]): Promise<Float32Array> {
  const out = join(home, "logits.f32");
  const { code, stderr } = await runHearth(["logits", "--model", MODEL, "--tokens", "30,31", "--out", out, ...args], {
    home,
  });
  expect([code, stderr]).toEqual([0, ""]);
  return new Float32Array(await Bun.file(out).arrayBuffer());
}

test("logits --backend webgpu --precise gives the logits of --backend cpu", async () => {
  const got = await logits("--backend", "webgpu", "--precise");
  expect(nmse(got, await logits("--backend", "cpu"))).toBeLessThan(1e-10);
});

test("logits and generate obey HEARTH_BACKEND and HEARTH_GPU_MEMORY, as the server does", async () => {
  const env = { HEARTH_BACKEND: "webgpu", HEARTH_GPU_MEMORY: "1MB" };
  const model = ["--model", MODEL, "--tokens", "30", "--num-gpu", "7"];
  for (const command of [
    ["logits", "--out", join(home, "none.f32")],
    ["generate", "--greedy", "1"],
  ]) {
    const { code, stderr } = await runHearth([...command, ...model], { home, env });
    expect(code).toBe(1);
    expect(stderr).toMatch(/7 of 7 layers on the GPU: \d+ bytes needed, 1000000 are there for a model/);
  }
  const flag = await runHearth(["generate", "--greedy", "1", ...model, "--backend", "cpu"], { home, env });
  expect([flag.code, flag.stderr]).toEqual([0, ""]);
});

test("a server with HEARTH_BACKEND=webgpu answers", async () => {
  const hearth = await startHearth({ env: { HEARTH_BACKEND: "webgpu" } });
  try {
    const body = { model: "hearth", prompt: "Hello!", stream: false, options: { temperature: 0, num_predict: 3 } };
    const response = await hearth.post("/api/generate", body);
    expect(await response.json()).toMatchObject({ done: true, eval_count: 3 });
  } finally {
    await hearth.stop();
  }
});

test("a driver folder that other users can write to is refused", async () => {
  const folder = join(home, "driver");
  mkdirSync(folder);
  chmodSync(folder, 0o777);
  const filled = fillOnce(folder, async () => {});
  await expect(filled).rejects.toThrow(`'${folder}': expected a folder that only this user can change`);
});
