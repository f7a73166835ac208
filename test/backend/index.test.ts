/** The choice among backends by name. */
import { expect, test } from "bun:test";
import { chooseBackend } from "../../src/backend/index.ts";

test("no layer on the GPU means a backend without one, also where the GPU is named", async () => {
  for (const name of ["auto", "webgpu"]) {
    const { name: chosen } = await chooseBackend(name, { layers: 0 });
    expect(["onnx", "cpu"]).toContain(chosen);
  }
});

test("a backend without a GPU is what it is, whatever is wanted on a GPU", async () => {
  expect((await chooseBackend("cpu", { layers: 99 })).name).toBe("cpu");
  await expect(chooseBackend("vulkan")).rejects.toThrow(/backend 'vulkan': expected auto or one of webgpu, onnx, cpu/);
});
