/** Number of layers on a GPU: as requested, or as many as fit. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import type { Backend, Program } from "../../../src/engine/program/backend.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { makeOffloadingBackend, type Offload } from "../../../src/engine/backends/offload.ts";
import { layerCount } from "../../../src/engine/program/split.ts";
import type { Step } from "../../../src/engine/program/step.ts";
import { AppError } from "../../../src/base/errors.ts";
import type { Gguf } from "../../../src/engine/formats/gguf/gguf.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { writeGguf } from "../../../src/engine/formats/files/write.ts";
import { makeModel } from "../architectures/models.ts";
import { options } from "./exercise.ts";
import { simdLevels } from "./simd/levels.ts";

const LAYER_BYTES = 100;
/** The part of a layer that is its experts. */
const EXPERTS_BYTES = 60;

let folder = "";
let gguf: Gguf;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "hearth-offload-"));
  await writeGguf(join(folder, "model.gguf"), makeModel("gemma3")); // seven layers and the output
  gguf = openGguf(join(folder, "model.gguf"));
});
afterAll(async () => {
  gguf.close();
  await rm(folder, { recursive: true });
});

interface Machine {
  /** Bytes that its GPU really has. */
  readonly room?: number;
  /** The error of its GPU at every load. */
  readonly failing?: AppError;
  /** The longest part of the model, in layers, that its GPU has kernels for. */
  readonly able?: number;
  readonly automatic?: boolean;
}

/** Loads the model; returns the layers requested from the GPU, and the model's final place. */
async function load(
  { room = Infinity, failing, able = Infinity, automatic = false }: Machine,
  offload: Offload,
  program: Program = loadProgram(gguf),
) {
  const attempts: number[] = [];
  const gpu: Backend = {
    ...cpuBackend,
    name: "gpu",
    async neededBytes(part) {
      if (layerCount(part) > able) throw new AppError("unsupported", `no kernels for ${layerCount(part)} layers`);
      return LAYER_BYTES * layerCount(part);
    },
    async load(part: Program) {
      const count = layerCount(part);
      attempts.push(count);
      if (failing) throw failing;
      if (LAYER_BYTES * count > room) throw new AppError("too_large", `no room for ${count} layers`);
      const session = await cpuBackend.load(part, options);
      return Object.assign(session, { backend: "gpu", gpuLayers: { count, all: count } });
    },
  };
  const backend = makeOffloadingBackend({ gpu, cpu: cpuBackend, automatic }, offload);
  const session = await backend.load(program, options);
  const { backend: name, gpuLayers } = session;
  session.close();
  return { attempts, name, gpuLayers };
}

describe("without a requested number of layers", () => {
  test("the last layers go to a GPU that lacks kernels for an earlier layer, whether it was named or not", async () => {
    for (const automatic of [false, true]) {
      const { attempts, name, gpuLayers } = await load({ able: 5, automatic }, {});
      expect({ attempts, name, gpuLayers }).toEqual({
        attempts: [5],
        name: "gpu+cpu",
        gpuLayers: { count: 5, all: 8 },
      });
    }
    expect((await load({ able: 5 }, { memory: 300 })).attempts).toEqual([3]);
  });

  test("a GPU with kernels for the output only is refused if it was named, and is not used otherwise", async () => {
    await expect(load({ able: 1 }, {})).rejects.toThrow("no kernels for 8 layers");
    expect(await load({ able: 1, automatic: true }, {})).toMatchObject({ name: "cpu", gpuLayers: undefined });
  });

  test("all layers go to a GPU that has room", async () => {
    const whole = { attempts: [8], name: "gpu", gpuLayers: { count: 8, all: 8 } };
    expect(await load({}, {})).toEqual(whole);
    expect(await load({}, { memory: 800 })).toEqual(whole);
  });

  test("as many layers as fit in the known memory go to the GPU in one attempt", async () => {
    expect(await load({}, { memory: 799 })).toEqual({
      attempts: [7],
      name: "gpu+cpu",
      gpuLayers: { count: 7, all: 8 },
    });
    expect((await load({}, { memory: 300 })).attempts).toEqual([3]);
    expect((await load({}, { memory: 200 })).attempts).toEqual([2]);
  });

  test("each failed attempt is followed by one with less than four fifths of its layers", async () => {
    const { attempts, gpuLayers } = await load({ room: 350 }, {});
    expect(attempts).toEqual([8, 6, 4, 3]);
    expect(gpuLayers).toEqual({ count: 3, all: 8 });
  });

  test("fewer layers go to the GPU if the model cannot be cut before an earlier layer", async () => {
    const program = loadProgram(gguf);
    const isFifth = (step: Step): boolean => step.op === "attention" && step.layer === 4;
    const given: Step = { op: "addGiven", x: { name: "x", dim: program.shape.dim }, at: 0 };
    const steps = program.steps.flatMap((step) => (isFifth(step) ? [given, step] : [step]));
    expect((await load({}, { memory: 700 }, { ...program, steps })).attempts).toEqual([3]);
  });

  test("layers that share keys go to the GPU together, and are refused together if they do not fit", async () => {
    const program = loadProgram(gguf);
    const steps = program.steps.map((step): Step =>
      step.op === "attention" && step.layer > 4 ? { ...step, op: "sharedAttention", source: 4 } : step,
    );
    const sharing = { ...program, steps };
    expect((await load({}, { memory: 500 }, sharing)).attempts).toEqual([5]);
    await expect(load({}, { memory: 399 }, sharing)).rejects.toThrow("4 of 8 layers on the GPU: 400 bytes needed");
  });

  test("a GPU without room for the output and one layer is refused if it was named, and is not used otherwise", async () => {
    const message = "2 of 8 layers on the GPU: 200 bytes needed, 199 are there for a model";
    await expect(load({}, { memory: 199 })).rejects.toThrow(message);
    await expect(load({ room: 150 }, {})).rejects.toThrow("no room for 2 layers");
    const without = { name: "cpu", gpuLayers: undefined };
    expect(await load({ automatic: true }, { memory: 199 })).toMatchObject({ attempts: [], ...without });
    expect(await load({ automatic: true, room: 150 }, {})).toMatchObject(without);
  });
});

const [simd] = simdLevels;
describe.skipIf(!simd)("the experts of a model that does not fit whole", () => {
  /** Loads a model of two layers with experts; returns the layers with experts on the CPU at each attempt. */
  async function loadExperts({ room = Infinity, able = true }, offload: Offload) {
    await writeGguf(join(folder, "experts.gguf"), makeModel("llama-experts"));
    const file = openGguf(join(folder, "experts.gguf"));
    const program = loadProgram(file);
    const attempts: number[] = [];
    const bytesOf = (part: Program, cut: number): number => LAYER_BYTES * layerCount(part) - EXPERTS_BYTES * cut;
    const gpu: Backend = {
      ...cpuBackend,
      name: "gpu",
      async neededBytes(part, { hostSteps }) {
        if (!able && !hostSteps) throw new AppError("unsupported", "no kernels for experts");
        return bytesOf(part, hostSteps?.steps.size ?? 0);
      },
      async load(part, { hostSteps }) {
        const cut = hostSteps?.steps.size ?? 0;
        attempts.push(cut);
        if (bytesOf(part, cut) > room) throw new AppError("too_large", "no room");
        const session = await cpuBackend.load(part, options);
        return Object.assign(session, {
          backend: "gpu",
          gpuLayers: { count: layerCount(part), all: layerCount(part) },
        });
      },
    };
    try {
      const session = await makeOffloadingBackend({ gpu, cpu: simd!.backend, automatic: false }, offload).load(
        program,
        options,
      );
      const { backend: name, gpuLayers } = session;
      session.close();
      return { attempts, name, gpuLayers };
    } finally {
      file.close(); // Windows removes no open file
    }
  }

  test("stay on the CPU for as few layers as necessary", async () => {
    expect(await loadExperts({}, { memory: 300 })).toMatchObject({ attempts: [0], name: "gpu" });
    for (const [memory, cpuExperts] of [
      [299, 1],
      [239, 2],
    ] as const) {
      const gpuLayers = { count: 3, all: 3, cpuExperts };
      expect(await loadExperts({}, { memory })).toEqual({ attempts: [cpuExperts], name: "gpu+simd", gpuLayers });
    }
  });

  test("stay on the CPU also if the memory is unknown or the GPU has no kernels for experts", async () => {
    expect(await loadExperts({ room: 200 }, {})).toMatchObject({ attempts: [0, 1, 2], name: "gpu+simd" });
    expect(await loadExperts({ able: false }, {})).toMatchObject({ attempts: [1], name: "gpu+simd" });
  });

  test("are not divided if a number of layers is requested or the rest does not fit either", async () => {
    expect((await loadExperts({}, { layers: 2, memory: 250 })).gpuLayers).toEqual({ count: 2, all: 3 });
    await expect(loadExperts({}, { memory: 179 })).rejects.toThrow("2 of 3 layers on the GPU: 200 bytes needed");
  });
});

describe("several GPUs", () => {
  /** Loads the model on GPUs that have room for these numbers of layers; returns the places of its layers. */
  async function loadOver(rooms: readonly number[], offload: Offload = {}, automatic = false): Promise<string> {
    const gpus = rooms.map((room, i): Backend => {
      return {
        ...cpuBackend,
        neededBytes: async (part) => LAYER_BYTES * layerCount(part),
        async load(part) {
          const count = layerCount(part);
          if (count > room) throw new AppError("too_large", `no room for ${count} layers`);
          const device = `GPU ${i + 1}`;
          return Object.assign(await cpuBackend.load(part, options), { device, gpuLayers: { count, all: count } });
        },
      };
    });
    const others = async (): Promise<Backend[]> => gpus.slice(1);
    const cpu: Backend = {
      ...cpuBackend,
      load: async (part) => Object.assign(await cpuBackend.load(part, options), { device: "CPU" }),
    };
    const { load: loadProgramOn } = makeOffloadingBackend({ gpu: gpus[0]!, cpu, automatic, others }, offload);
    const session = await loadProgramOn(loadProgram(gguf), options);
    session.close();
    return `${session.device} (${session.gpuLayers?.count ?? 0})`;
  }

  test("take a model that does not fit on the first, in order, and the CPU takes the rest", async () => {
    expect(await loadOver([8, 8])).toBe("GPU 1 (8)");
    expect(await loadOver([6, 7, 8])).toBe("GPU 3 (8)");
    expect(await loadOver([6, 7])).toBe("GPU 1: 6 of 8 layers, GPU 2: the others (8)");
    expect(await loadOver([3, 2, 4])).toBe("GPU 1: 3 of 8 layers, GPU 2: 2 layers, GPU 3: the others (8)");
    expect(await loadOver([3, 2])).toBe("GPU 1: 3 of 8 layers, GPU 2: 2 layers, CPU: the others (5)");
    expect(await loadOver([3, 0])).toBe("GPU 1: 3 of 8 layers, CPU: the others (3)");
    expect(await loadOver([1, 8])).toBe("GPU 2 (8)");
  });

  test("take no more memory together than is allowed", async () => {
    expect(await loadOver([4, 5], { memory: 600 })).toBe("GPU 1: 4 of 8 layers, GPU 2: 2 layers, CPU: the others (6)");
  });

  test("take a requested number of layers, or refuse it", async () => {
    expect(await loadOver([4, 5], { layers: 6 })).toBe("GPU 1: 4 of 8 layers, GPU 2: 2 layers, CPU: the others (6)");
    expect(await loadOver([4, 5], { layers: 3 })).toBe("GPU 1: 3 of 8 layers, CPU: the others (3)");
    expect(await loadOver([4, 5], { layers: 5 })).toBe("GPU 2: 5 of 8 layers, CPU: the others (5)");
    for (const automatic of [false, true])
      await expect(loadOver([4, 2], { layers: 7 }, automatic)).rejects.toThrow("no room for");
  });
});

describe("a requested number of layers", () => {
  test("goes to the GPU, or all layers if the model has fewer", async () => {
    for (const [layers, count] of [
      [1, 1],
      [4, 4],
      [8, 8],
      [99, 8],
    ] as const) {
      const { attempts, gpuLayers } = await load({}, { layers });
      expect({ attempts, gpuLayers }).toEqual({ attempts: [count], gpuLayers: { count, all: 8 } });
    }
  });

  test("is refused if it does not fit, whether the GPU was named or chosen", async () => {
    for (const automatic of [false, true]) {
      const known = load({ automatic }, { layers: 4, memory: 399 });
      await expect(known).rejects.toThrow("4 of 8 layers on the GPU: 400 bytes needed, 399 are there for a model");
      await expect(load({ automatic, room: 399 }, { layers: 4 })).rejects.toThrow("no room for 4 layers");
    }
  });
});

test("a model that the GPU has no kernel for runs on the CPU, unless the GPU was named", async () => {
  const failing = new AppError("unsupported", "block type");
  for (const layers of [undefined, 4]) {
    expect(await load({ failing, automatic: true }, { layers })).toMatchObject({ name: "cpu", gpuLayers: undefined });
    await expect(load({ failing }, { layers })).rejects.toThrow("block type");
  }
  const bad = new AppError("bad_file", "cut short");
  await expect(load({ failing: bad, automatic: true }, {})).rejects.toThrow("cut short");
});

test("the ops that the GPU lacks are known before a load", () => {
  const gpu = { ...cpuBackend, missing: () => ["remember"] };
  const backend = makeOffloadingBackend({ gpu, cpu: cpuBackend, automatic: true }, {});
  expect(backend.missing?.({} as Program)).toEqual(["remember"]);
});
