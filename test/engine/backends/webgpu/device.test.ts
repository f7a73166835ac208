/** Failures of a device: allocations that do not fit, NaN, a lost or silent device. */
import { beforeAll, describe, expect, test } from "bun:test";
import { allocate } from "../../../../src/engine/backends/webgpu/allocate.ts";
import { adapterFacts, adapterRefusal } from "../../../../src/engine/backends/webgpu/adapters.ts";
import { chooseNames } from "../../../../src/engine/backends/host/dawn.ts";
import { Device } from "../../../../src/engine/backends/webgpu/device.ts";
import { makePieces } from "../../../../src/engine/backends/webgpu/weights.ts";
import { lower } from "../../../../kernels/wgsl/lower.ts";
import type { LoadOptions } from "../../../../src/engine/program/backend.ts";
import type { Step } from "../../../../src/engine/program/step.ts";
import { quants } from "../../../../src/engine/formats/quant/index.ts";
import { conformanceCases } from "../../../conformance/cases.ts";
import type { BackendChild } from "../child.ts";
import { sharedWebGpu } from "./shared.ts";

let gpu: BackendChild;
beforeAll(async () => void (gpu = await sharedWebGpu()));

const cases = conformanceCases();
const caseOf = (name: string) => cases.find((each) => each.name === name)!;
const options: LoadOptions = { ctxLen: 40, slots: 3, precise: true, threads: 1, cacheDir: undefined };
const limits = {
  maxBufferSize: 1000,
  maxStorageBufferBindingSize: 1000,
  maxStorageBuffersPerShaderStage: 10,
  maxComputeInvocationsPerWorkgroup: 256,
  maxComputeWorkgroupStorageSize: 16_384,
  maxComputeWorkgroupsPerDimension: 65_535,
};

test("an adapter is chosen by its name or by a part of it that no other name has", () => {
  const names = ["NVIDIA RTX 4090", "NVIDIA T400", "NVIDIA T400 4GB"];
  expect(["4090", "nvidia t400", "4gb"].flatMap((meant) => chooseNames(names, meant))).toEqual(names);
  expect(() => chooseNames(names, "T40")).toThrow(
    "HEARTH_GPU='T40': several GPUs have such a name; there are 'NVIDIA RTX",
  );
  expect(chooseNames(names, "4gb, 4090, 4GB")).toEqual(["NVIDIA T400 4GB", "NVIDIA RTX 4090"]);
  expect(chooseNames(["llvmpipe (LLVM 15, 256 bits)"], "llvm 15, 256")).toHaveLength(1);
  expect(() => chooseNames(names, "4090,T1000")).toThrow("HEARTH_GPU='T1000': no GPU has such a name");
  expect(() => chooseNames([], "T40")).toThrow("HEARTH_GPU='T40': no GPU has such a name; there are none");
});

test("an error for NaN in a weight names the file, the step and the tensor, and the session remains usable", async () => {
  const { program, batches } = caseOf("linear: three parts of a fused tensor, f16");
  const weights = { ...program.weights, read: (name: string) => program.weights.read(name).slice() };
  const broken = weights.read("w1.weight");
  broken.set([0xff, 0xff], 2 * 256 * 21); // row 1 of the second part
  const read = (name: string): Uint8Array => (name === "w1.weight" ? broken : program.weights.read(name));
  const session = await gpu.backend.load({ ...program, weights: { ...weights, read } }, options);
  for (let i = 0; i < 2; i++) {
    const message =
      /conformance\/linear.*: step 2 \(linear with 'w1.weight'\): expected numbers, got NaN at row 0, value 1$/;
    await expect(session.run(batches.at(-1)!)).rejects.toThrow(message);
  }
  session.close();
}, 60_000);

test("an error for NaN in a matrix of an MLP names that matrix, not the gate before it", async () => {
  const { program, batches } = caseOf("gatedMlp: silu");
  const { up, down } = program.steps.find(({ op }) => op === "gatedMlp") as Step & { op: "gatedMlp" };
  for (const { name } of [up, down]) {
    const broken = program.weights.read(name).slice().fill(0xff);
    const read = (other: string): Uint8Array => (other === name ? broken : program.weights.read(other));
    const session = await gpu.backend.load({ ...program, weights: { ...program.weights, read } }, options);
    await expect(session.run(batches.at(-1)!)).rejects.toThrow(`(gatedMlp with '${name}'): expected numbers, got NaN`);
    session.close();
  }
}, 60_000);

test("a KV cache larger than a binding is refused before anything is uploaded, with both sizes", async () => {
  const { program } = caseOf("attention: 4 heads on 4 of 16");
  const huge = { ...options, ctxLen: 4_000_000, slots: 4 };
  const message = "keys of layer 0: the GPU binds 1073741824 bytes at once, got 4096000000";
  await expect(gpu.backend.load(program, huge)).rejects.toThrow(message);
}, 60_000);

test("the device loads other models after a refusal", async () => {
  const { program, batches } = caseOf("scale: in place");
  const session = await gpu.backend.load(program, options);
  expect((await session.run(batches[0]!)).length).toBe(5 * 33);
  session.close();
}, 60_000);

describe("a tensor that no binding can hold", () => {
  const weight = { name: "w", quant: quants.q8_0, inDim: 64, outDim: 40, rowStart: 0, tensorRows: 40, experts: 1 };

  test("is cut between rows", () => {
    const pieces = makePieces(limits, "file")(weight);
    expect(pieces.map(({ first, count }) => [first, count])).toEqual([
      [0, 13],
      [13, 13],
      [26, 13],
      [39, 1],
    ]);
  });

  test("is multiplied piece by piece, each into its own columns", () => {
    const [x, out] = [
      { name: "x", dim: 64 },
      { name: "y", dim: 20 },
    ];
    const steps = [
      { op: "embed", out: x, table: weight, scale: 1 },
      { op: "linear", out, x, w: { ...weight, rowStart: 10, outDim: 20 } },
    ] as const;
    const piecesOf = makePieces(limits, "file");
    const parts = lower(steps, { ctxLen: 16, isGemm: false, piecesOf }).filter(({ kernel }) => kernel === "linear");
    const [count, first, column] = ["count", "first", "yFirst"].map((name) => parts.map(({ params }) => params[name]));
    expect({ count, first, column }).toEqual({ count: [3, 13, 4], first: [10, 0, 0], column: [0, 3, 16] });
  });

  test("is read piece by piece if it holds experts, and each piece adds to the results before it", () => {
    const x = { name: "x", dim: 64 };
    const stack = { ...weight, tensorRows: 5, outDim: 5, experts: 6 }; // 340 bytes each
    const [narrow, router] = [
      { ...stack, inDim: 32, outDim: 64, tensorRows: 64, name: "down", quant: quants.q4_0 }, // 1,152 bytes each
      { ...weight, outDim: 6, tensorRows: 6, name: "router" },
    ];
    const steps = [
      { op: "embed", out: x, table: weight, scale: 1 },
      {
        op: "moe",
        out: x,
        x,
        router,
        gate: { ...stack, name: "gate" },
        up: { ...stack, name: "up" },
        down: narrow,
        act: "silu",
        nUsed: 2,
        normalize: true,
        scale: 1,
      },
    ] as const;
    const piecesOf = makePieces({ ...limits, maxBufferSize: 4000, maxStorageBufferBindingSize: 2500 }, "file");
    const parts = (kernel: string, names: readonly string[]) =>
      lower(steps, { ctxLen: 16, isGemm: false, piecesOf })
        .filter((each) => each.kernel === kernel)
        .map(({ params }) => names.map((name) => params[name]));
    // First expert and number; for down also the target of the sum.
    expect(parts("moe_gated", ["firstExpert", "experts"])).toEqual([[0, 6]]);
    expect(parts("moe_down", ["firstExpert", "experts", "base"])).toEqual([
      [0, 2, 0],
      [2, 2, 2],
      [4, 2, 2],
    ]);
  });

  test("is refused with both sizes if a row or an expert is too large", () => {
    const wide = { ...weight, inDim: 1024 };
    expect(() => makePieces(limits, "file")(wide)).toThrow("'w': the GPU binds 936 bytes at once, a row takes 1088");
    const stack = { ...weight, experts: 4 };
    expect(() => makePieces(limits, "file")(stack)).toThrow("binds 936 bytes at once, an expert takes 2720");
  });
});

test("activations that are needed at the same time never share memory, and others do", () => {
  const { program } = caseOf("mlp: silu");
  const piecesOf = makePieces({ ...limits, maxBufferSize: 1e9, maxStorageBufferBindingSize: 1e9 }, "file");
  const dispatches = lower(program.steps, { ctxLen: 16, isGemm: false, piecesOf });
  const results = [{ name: program.states.name, end: dispatches.length }];
  const { placeOf, sizes } = allocate(dispatches, { results, capacity: { all: 4, wanted: 4 } });
  expect(sizes.length).toBe(2);
  for (const { operands } of dispatches) {
    const places = operands.filter(({ kind }) => kind === "activation").map(placeOf);
    expect(new Set(places).size).toBe(places.length);
  }
});

describe("a device", () => {
  /** The part of a GPUDevice that `Device` listens to. */
  function makeSilent() {
    const lost = Promise.withResolvers<GPUDeviceLostInfo>();
    const gpuDevice = { lost: lost.promise, addEventListener() {} } as unknown as GPUDevice;
    const facts = { name: "test", device: "", vendor: "", architecture: "", software: false, features: [], limits };
    const pump = { start: <T>(call: () => T) => call(), kick() {} };
    return {
      lost,
      device: new Device(gpuDevice, { facts, subgroups: false, matrix: undefined, pump, deadlineMs: 20 }),
    };
  }

  test("fails waiting and later calls if it gives no answer in time", async () => {
    const { device } = makeSilent();
    await expect(device.wait(() => new Promise(() => {}))).rejects.toThrow("GPU 'test' gave no answer within 0.02 s");
    await expect(device.wait(() => Promise.resolve(1))).rejects.toThrow("gave no answer");
    expect((await device.lost).message).toContain("gave no answer");
  });

  test("fails waiting calls if it is lost", async () => {
    const { device, lost } = makeSilent();
    const waiting = device.wait(() => new Promise(() => {}));
    lost.resolve({ reason: "unknown", message: "driver reset" } as GPUDeviceLostInfo);
    await expect(waiting).rejects.toThrow("GPU 'test' was lost: driver reset");
  });
});

test("an adapter that computes nothing or binds too little is refused, and a software adapter is recognized", () => {
  const adapter = (info: object, more: object = {}): GPUAdapter =>
    ({ info, features: new Set(), limits: { ...limits, ...more } }) as unknown as GPUAdapter;
  expect(adapterRefusal(adapter({ device: "null-backend" }))).toContain("computes nothing");
  expect(adapterRefusal(adapter({ device: "a" }, { maxStorageBuffersPerShaderStage: 4 }))).toContain("4 storage");
  expect(adapterRefusal(adapter({ device: "a" }, { maxStorageBuffersPerShaderStage: 8 }))).toBeUndefined();
  for (const info of [
    { description: "llvmpipe (LLVM 15)" },
    { isFallbackAdapter: true },
    { architecture: "swiftshader" },
  ])
    expect(adapterFacts(adapter(info)).software).toBe(true);
  expect(adapterFacts(adapter({ description: "NVIDIA H100", vendor: "nvidia" })).software).toBe(false);
});
