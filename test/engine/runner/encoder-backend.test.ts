/** The backend of an image encoder, on machines with and without room on a GPU. */
import { expect, test } from "bun:test";
import { AppError } from "../../../src/base/errors.ts";
import { chooseAmong, type Choices } from "../../../src/engine/backends/choose.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import type { Backend, Program } from "../../../src/engine/program/backend.ts";
import { encoderBackend } from "../../../src/engine/runner/encoder-backend.ts";
import { makeCase } from "../../conformance/draft.ts";
import { options } from "../backends/exercise.ts";

const whole = makeCase("an encoder", { dim: 8 }, ({ x }) => x).program;
/** The second part of an encoder: no layers, no logits. */
const projection: Program = {
  ...whole,
  steps: [
    { op: "input", out: whole.states },
    { op: "scale", x: whole.states, by: 2 },
  ],
  logits: undefined,
};
const NEEDED = 100;

interface Machine {
  /** The error of its GPU at a load. */
  readonly failing?: AppError;
  readonly gpuMemory?: number;
  readonly free?: number;
  readonly program?: Program;
  /** The name of its GPU, if the user asked for one. */
  readonly adapter?: string;
}

/** The backend that an encoder is loaded on, where the model runs on `runsOn` and takes 50 bytes of the GPU. */
async function loadedOn(
  runsOn: string,
  { failing, gpuMemory, free, adapter, program = whole }: Machine = {},
  backend = "auto",
): Promise<string> {
  const gpu: Backend = {
    name: "webgpu",
    neededBytes: () => Promise.resolve(NEEDED),
    load: async (...args) => {
      if (failing) throw failing;
      return Object.assign(await cpuBackend.load(...args), { backend: "webgpu" });
    },
  };
  const refuses = async (options: { adapter?: string | undefined }): Promise<string | undefined> =>
    options.adapter === adapter ? undefined : "another adapter is meant";
  const choices: Choices = {
    webgpu: { unavailable: () => undefined, refuses, open: () => Promise.resolve(gpu) },
    cpu: { unavailable: () => undefined, open: () => Promise.resolve(cpuBackend) },
  };
  const host = {
    chooseBackend: (...args: [string, object]) => chooseAmong(choices, ...args),
    gpuFreeBytes: () => Promise.resolve(free),
  };
  const chosen = await host.chooseBackend(backend, { adapter });
  const model = { info: { backend: runsOn, vramBytes: 50 } } as Parameters<typeof encoderBackend>[1];
  const encoders = await encoderBackend(chosen, model, { message: { backend, gpuMemory, gpu: adapter }, host });
  const session = await encoders.load(program, options);
  session.close();
  return session.backend;
}

test("an encoder runs on the GPU if the model has layers there", async () => {
  expect(await loadedOn("webgpu")).toBe("webgpu");
  expect(await loadedOn("webgpu+simd")).toBe("webgpu");
  expect(await loadedOn("webgpu", {}, "webgpu")).toBe("webgpu");
});

test("an encoder runs on the model's adapter", async () => {
  expect(await loadedOn("webgpu", { adapter: "the second" })).toBe("webgpu");
  expect(await loadedOn("webgpu", { adapter: "the second" }, "webgpu")).toBe("webgpu");
});

test("an encoder runs on the CPU if the model does, with a GPU or without", async () => {
  expect(await loadedOn("simd")).toBe("cpu");
  expect(await loadedOn("cpu", {}, "cpu")).toBe("cpu");
});

test("an encoder runs on the GPU only if it fits beside the model", async () => {
  expect(await loadedOn("webgpu", { gpuMemory: NEEDED + 50 })).toBe("webgpu");
  expect(await loadedOn("webgpu", { gpuMemory: NEEDED + 49 })).toBe("cpu");
  expect(await loadedOn("webgpu", { gpuMemory: 20 }, "webgpu")).toBe("cpu");
  expect(await loadedOn("webgpu", { free: NEEDED })).toBe("webgpu");
  expect(await loadedOn("webgpu", { free: NEEDED - 1 })).toBe("cpu");
});

test("an encoder without attention follows the same rules", async () => {
  expect(await loadedOn("webgpu", { program: projection, free: NEEDED })).toBe("webgpu");
  expect(await loadedOn("webgpu", { program: projection, free: NEEDED - 1 })).toBe("cpu");
  expect(await loadedOn("simd", { program: projection })).toBe("cpu");
});

test("an encoder runs on the CPU if the GPU refuses it, and a lost GPU is an error", async () => {
  const refusing = { failing: new AppError("unsupported", "no kernel") };
  expect(await loadedOn("webgpu", refusing)).toBe("cpu");
  expect(await loadedOn("webgpu", refusing, "webgpu")).toBe("cpu");
  expect(await loadedOn("webgpu", { failing: new AppError("too_large", "no room") })).toBe("cpu");
  await expect(loadedOn("webgpu", { failing: new AppError("runner", "lost") })).rejects.toThrow("lost");
});
