/** The setting for a GPU's kernels, from the environment and the command line to the device. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeGguf } from "../../src/engine/formats/files/write.ts";
import { quantizedTo } from "../engine/architectures/adapters.ts";
import { makeModel } from "../engine/architectures/models.ts";
import { nmse } from "../engine/backends/compare.ts";
import { swiftShaderEnv } from "../engine/backends/webgpu/swiftshader.ts";
import { runHearth, startHearth } from "./hearth.ts";

setDefaultTimeout(120_000); // a CPU that plays a GPU

let [home, file] = ["", ""];
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "hearth-kernels-"));
  file = join(home, "small.gguf");
  const model = makeModel("llama"); // the embedded model would take seconds
  await writeGguf(file, { ...model, tensors: model.tensors.map((tensor) => quantizedTo("q4_0", tensor)) });
});
afterAll(() => rm(home, { recursive: true }));

const logits = async (kernels: string) => {
  const out = join(home, "logits.f32");
  const model = ["--model", file, "--tokens", "30,31", "--out", out, "--backend", "webgpu"];
  const args = ["logits", ...model, "--kernels", kernels];
  const { code, stderr } = await runHearth(args, { env: await swiftShaderEnv(), home });
  return { code, stderr, values: code === 0 ? new Float32Array(await Bun.file(out).arrayBuffer()) : undefined };
};

test("a kernel of HEARTH_GPU_KERNELS that the device cannot run fails the request and names the missing feature", async () => {
  const env = { ...(await swiftShaderEnv()), HEARTH_BACKEND: "webgpu", HEARTH_GPU_KERNELS: "columns=8,f16" };
  const hearth = await startHearth({ env });
  try {
    const response = await hearth.post("/api/generate", { model: "hearth", prompt: "a", stream: false });
    expect(response.status).toBeGreaterThanOrEqual(400);
    const { error } = (await response.json()) as { error: string };
    expect(error).toMatch(/kernels threads=64,columns=8,.*f16: GPU 'SwiftShader.*' has no shader-f16/);
  } finally {
    await hearth.stop();
  }
});

test("logits --kernels packed stays within an NMSE of 1e-3 of plain", async () => {
  const [plain, packed] = [await logits("plain"), await logits("packed,columns=2")];
  const difference = nmse(packed.values!, plain.values!);
  expect(difference).toBeGreaterThan(1e-6); // the remaining difference: keys and values in float16
  expect(difference).toBeLessThan(1e-3);
});

test("logits --kernels refuses an unknown choice and lists the known ones", async () => {
  const { code, stderr } = await logits("quick");
  expect(code).toBe(1);
  expect(stderr).toContain("expected auto, exact, plain, or some of threads=32|64|128|256, columns=1|2|4|8");
});
