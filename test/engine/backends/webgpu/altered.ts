/**
 * Runs cases with altered kernels: poisoned workgroup memory, subgroups of a forced width. Also runs one kernel that
 * reads poisoned memory. poison.test.ts and widths.test.ts start it.
 */
import { parseKernels } from "../../../../src/base/index.ts";
import type { Backend } from "../../../../src/engine/program/backend.ts";
import { cpuBackend } from "../../../../src/engine/backends/cpu.ts";
import { dawn } from "../../../../src/engine/backends/host/dawn.ts";
import { webGpuBackend } from "../../../../src/engine/backends/host/webgpu.ts";
import { openDevice, type Device } from "../../../../src/engine/backends/webgpu/device.ts";
import { runCase } from "../../../conformance/cases.ts";
import { chosenCases, type Choice } from "./chosen-cases.ts";
import { forcedWidth } from "./forced-width.ts";
import { poisoned } from "./poison.ts";
import { gpuRuntime, swiftShaderEnv, TOGGLES } from "./swiftshader.ts";

/** The argument of this program, as JSON. */
interface Asked {
  readonly choice: Choice;
  /** A part of the names of its cases. */
  readonly names?: string;
  /** Undefined: the device's. */
  readonly width?: number;
  /** Kernels that round to float16; undefined: the plain ones, in precise mode. */
  readonly kernels?: string;
}

export interface Altered {
  /** The value of a kernel that reads workgroup memory before it writes it. */
  readonly unwritten: string;
  /** Number of changed kernels, and of cases that ran. */
  readonly changed: number;
  readonly cases: number;
  /** Names of cases with other results than the reference. */
  readonly wrong: readonly string[];
}

const READER = `@group(0) @binding(0) var<storage, read_write> y: array<f32>;
var<workgroup> kept: array<f32, 64>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) t: u32) {
  y[t] = kept[t];
}
`;

/** Runs this program with a GPU driver. */
export async function alter(asked: Asked): Promise<Altered> {
  const child = Bun.spawn([gpuRuntime(), import.meta.path, JSON.stringify(asked)], {
    env: { ...process.env, ...(await swiftShaderEnv()) },
    stdio: ["ignore", "pipe", "inherit"],
  });
  return JSON.parse(await child.stdout.text()) as Altered;
}

async function readUnwritten(device: Device): Promise<number> {
  const { gpu } = device;
  const compute = { module: gpu.createShaderModule({ code: READER }), entryPoint: "main" };
  const pipeline = gpu.createComputePipeline({ layout: "auto", compute });
  const [y, readable] = [gpu.createBuffer({ size: 256, usage: 0x84 }), gpu.createBuffer({ size: 256, usage: 9 })];
  const entries = [{ binding: 0, resource: { buffer: y } }];
  const encoder = gpu.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, gpu.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries }));
  pass.dispatchWorkgroups(1);
  pass.end();
  encoder.copyBufferToBuffer(y, 0, readable, 0, 256);
  device.submit(encoder.finish());
  await device.wait(() => readable.mapAsync(1));
  return new Float32Array(readable.getMappedRange())[63]!;
}

/** The backend with some kernels, and the factor by which they exceed a case's tolerance. */
function withKernels(text: string | undefined): { backend: Backend; slack: number } {
  const gpuKernels = text === undefined ? undefined : parseKernels(text);
  if (gpuKernels === undefined) return { backend: webGpuBackend, slack: 1 };
  const load: Backend["load"] = (program, options) =>
    webGpuBackend.load(program, { ...options, precise: false, gpuKernels });
  return { backend: { ...webGpuBackend, load }, slack: 100 };
}

async function run({ choice, names = "", width, kernels }: Asked): Promise<Altered> {
  const device = await openDevice(dawn(TOGGLES));
  const { gpu } = device;
  let changed = 0;
  const create = gpu.createShaderModule.bind(gpu);
  gpu.createShaderModule = (descriptor) => {
    const forced = width === undefined ? descriptor.code : forcedWidth(descriptor.code, width);
    const code = width === undefined || forced !== descriptor.code ? poisoned(forced) : forced;
    if (code !== descriptor.code) changed++;
    return create({ ...descriptor, code });
  };
  const unwritten = String(await readUnwritten(device));
  const wrong: string[] = [];
  const { backend, slack } = withKernels(kernels);
  const cases = chosenCases(choice).filter(({ name }) => new RegExp(names).test(name));
  for (const each of cases) {
    const expected = await runCase(cpuBackend, each);
    const got = await runCase(backend, each).catch(() => []); // an error for NaN
    const { abs, rel } = each.tolerance;
    const isClose = (a: number, b: number): boolean => Math.abs(a - b) <= slack * (abs + rel * Math.abs(b));
    const agree = expected.every((logits, i) => logits.every((value, k) => isClose(got[i]?.[k] ?? NaN, value)));
    if (!agree) wrong.push(each.name);
  }
  return { unwritten, changed, cases: cases.length, wrong };
}

if (import.meta.main) {
  console.log(JSON.stringify(await run(JSON.parse(process.argv[2]!) as Asked))); // from `alter`
  process.exit(0); // a driver's threads may remain
}
