/** A model over two adapters: the driver of tests, and a copy of it with another name. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeGguf } from "../../../../src/engine/formats/files/write.ts";
import { makeModel } from "../../architectures/models.ts";
import type { Spread } from "./spreading.ts";
import { twoSwiftShadersEnv } from "./swiftshader.ts";

setDefaultTimeout(180_000);

let folder = "";
let path = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "hearth-spread-"));
  path = join(folder, "layers.gguf");
  await writeGguf(path, makeModel("smollm3")); // five layers
});
afterAll(() => rm(folder, { recursive: true }));

async function spread(adapter: string): Promise<Spread> {
  const child = Bun.spawn([process.execPath, `${import.meta.dir}/spreading.ts`, path, adapter], {
    env: { ...process.env, ...(await twoSwiftShadersEnv()) },
    stderr: "inherit",
  });
  return JSON.parse(await child.stdout.text()) as Spread;
}

test("two GPUs with room for a part each share a model, and give the results of one", async () => {
  const { gpuLayers, placement, backend, device, distance } = await spread("shader device,shader second");
  expect(distance).toBeLessThan(1e-10);
  expect(backend).toBe("webgpu");
  expect(gpuLayers).toEqual({ count: 6, all: 6 });
  const layers = placement!.map((part) => part.layers);
  expect(layers.length).toBe(2);
  expect(layers[0]! + layers[1]!).toBe(6);
  expect(device).toMatch(
    /^SwiftShader Device \(Subzero\): \d of 6 layers, SwiftShader Second \(Subzero\): the others$/,
  );
});
