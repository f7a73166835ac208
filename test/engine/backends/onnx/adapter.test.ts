/** Adapters on the ONNX graph: against the merged models and the reference, with and without the cache of graphs. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import type { Backend } from "../../../../src/engine/program/backend.ts";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { writeGguf, type WriteModel } from "../../../../src/engine/formats/files/write.ts";
import { makeAdapter, merge, quantizedTo, shapesOf, type AdapterOptions } from "../../architectures/adapters.ts";
import { CTX_LEN, makeModel, TOKENS } from "../../architectures/models.ts";
import { startOnnx } from "../child.ts";
import { differences, nmse } from "../compare.ts";

setDefaultTimeout(60_000);

const PRECISE_NMSE_MAX = 1e-5;
const DEFAULT_NMSE_MAX = 1e-2;

const onnx = startOnnx({ cachedBytesMin: 0 });
let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "hearth-onnx-lora-"))));
afterAll(async () => {
  await onnx.stop();
  await rm(folder, { recursive: true });
});

async function write(model: WriteModel): Promise<string> {
  const path = join(folder, `${crypto.randomUUID()}.gguf`);
  await writeGguf(path, model);
  return path;
}

interface Run {
  readonly adapters?: readonly string[];
  readonly backend?: Backend;
  readonly precise?: boolean;
  readonly cacheDir?: string;
}

async function logitsOf(
  path: string,
  { adapters: paths = [], backend = cpuBackend, precise = true, cacheDir }: Run = {},
): Promise<Float32Array> {
  const gguf = openGguf(path);
  const adapters = paths.map((adapter) => openGguf(adapter));
  try {
    const options = { ctxLen: CTX_LEN, slots: 1, precise, threads: 1, cacheDir };
    const session = await backend.load(loadProgram(gguf, adapters), options);
    const logits = (await session.run([{ slot: 0, start: 0, tokens: TOKENS, logits: "all" }])).slice();
    session.close();
    return logits;
  } finally {
    for (const file of [gguf, ...adapters]) file.close();
  }
}

const FIRST: AdapterOptions = { rank: 4, alpha: 8, seed: 1 };
const SECOND: AdapterOptions = { rank: 40, alpha: 10, seed: 2 };

describe("a model with adapters", () => {
  const names = ["llama", "llama-biases", "llama-tied-factors", "qwen3", "gemma3", "phi3", "llama-experts"];
  for (const name of [...names, "qwen3moe", "granitemoe"]) {
    test(`${name} gives the merged model's logits with one adapter and with two`, async () => {
      const model = makeModel(name);
      const [one, two] = [makeAdapter(model, FIRST), makeAdapter(model, SECOND)];
      const path = await write(model);
      const adapters = [await write(one), await write(two)];
      const expected = await logitsOf(await write(merge(model, one, FIRST)));
      const changed = (run: Run) => logitsOf(path, { adapters: adapters.slice(0, 1), backend: onnx.backend, ...run });
      expect(nmse(await changed({}), expected)).toBeLessThan(PRECISE_NMSE_MAX);
      expect(nmse(await changed({ precise: false }), expected)).toBeLessThan(DEFAULT_NMSE_MAX);
      const both = await logitsOf(await write(merge(merge(model, one, FIRST), two, SECOND)));
      expect(nmse(await changed({ adapters }), both)).toBeLessThan(PRECISE_NMSE_MAX);
    });
  }

  for (const type of ["q4_0", "q4_1", "q8_0", "f16"] as const) {
    test(`gives the reference's logits over weights of ${type}`, async () => {
      const model = makeModel("llama");
      const path = await write({ ...model, tensors: model.tensors.map((tensor) => quantizedTo(type, tensor)) });
      const adapters = [await write(makeAdapter(model, FIRST))];
      const expected = await logitsOf(path, { adapters });
      expect(nmse(await logitsOf(path, { adapters, backend: onnx.backend }), expected)).toBeLessThan(PRECISE_NMSE_MAX);
      const rounded = await logitsOf(path, { adapters, backend: onnx.backend, precise: false });
      expect(nmse(rounded, expected)).toBeLessThan(DEFAULT_NMSE_MAX);
    });
  }
});

test("the cache has one graph for each list of adapters in order, and a cached graph gives the same logits", async () => {
  const cacheDir = join(folder, "cache");
  const path = resolve(import.meta.dir, "../../../../models/hearth/hearth.gguf");
  const gguf = openGguf(path);
  const model = shapesOf(gguf);
  gguf.close();
  const [one, two] = await Promise.all([1, 2].map((seed) => write(makeAdapter(model, { ...FIRST, seed }))));
  const entries = (): number => readdirSync(cacheDir).length;
  const run = (adapters: readonly string[]) =>
    logitsOf(path, { adapters, backend: onnx.backend, precise: false, cacheDir });
  const plain = await run([]);
  const first = await run([one!]);
  expect(entries()).toBe(2);
  expect(differences(await run([one!]), first)).toBe(0);
  expect(differences(await run([]), plain)).toBe(0);
  expect(entries()).toBe(2);
  expect(nmse(first, plain)).toBeGreaterThan(1e-2);
  await run([two!]);
  await run([one!, two!]);
  await run([two!, one!]);
  expect(entries()).toBe(5);
});
