/** The two parts of a diffusion model on a GPU and as WebAssembly: states of all rows, and logits of some. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import { bodyOf, HEAD_ROWS, loadHead } from "../../../src/engine/batching/load-diffusion.ts";
import type { Backend } from "../../../src/engine/program/backend.ts";
import { wasmBackend } from "../../../src/engine/backends/host/wasm.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../src/engine/formats/files/write.ts";
import { diffusionNames, makeDiffusionModel, PROMPT } from "../architectures/diffusion-models.ts";
import { nmse } from "./compare.ts";
import { sharedWebGpu } from "./webgpu/shared.ts";

const NMSE_MAX = 1e-5;
/** As many rows as the head takes at once: all but the first and the last, repeated. */
const ROWS = Array.from({ length: HEAD_ROWS }, (_, i) => 1 + (i % (PROMPT.length - 2)));

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-diffusion-parts-"))));
afterAll(() => rm(folder, { recursive: true }));

async function logitsInParts(backend: Backend, path: string): Promise<Float32Array> {
  const gguf = openGguf(path);
  const program = loadProgram(gguf);
  const options = { slots: 1, precise: true, threads: 1, cacheDir: undefined };
  const body = await backend.load(bodyOf(program), { ...options, ctxLen: 64 });
  const head = (await loadHead(program, { ...options, backend, body }))!;
  const states = (await body.states([{ slot: 0, start: 0, tokens: PROMPT, states: "all" }])).slice();
  const { dim } = program.states;
  const input = Float32Array.from(ROWS.flatMap((row) => [...states.subarray(row * dim, (row + 1) * dim)]));
  const tokens = new Int32Array(ROWS.length);
  const logits = (await head.run([{ slot: 0, start: 0, tokens, input, logits: "all" }])).slice();
  head.close();
  body.close();
  gguf.close();
  return logits;
}

const backends = { wasm: async () => wasmBackend, webgpu: async () => (await sharedWebGpu()).backend };
for (const [kind, backendOf] of Object.entries(backends)) {
  for (const name of diffusionNames) {
    test(`${name} on ${kind} gives llama.cpp's logits of the requested rows`, async () => {
      const path = join(folder, `${kind}-${name}.gguf`);
      await writeGguf(path, makeDiffusionModel(name));
      const file = join(import.meta.dir, `../architectures/logits/${name}.f32`);
      const all = new Float32Array(await Bun.file(file).arrayBuffer());
      const width = all.length / PROMPT.length;
      const expected = Float32Array.from(ROWS.flatMap((row) => [...all.subarray(row * width, (row + 1) * width)]));
      expect(nmse(await logitsInParts(await backendOf(), path), expected)).toBeLessThan(NMSE_MAX);
    }, 120_000);
  }
}
