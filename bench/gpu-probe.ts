/**
 * Measures one GPU and Hearth's kernels on it, in minutes: read bandwidth, the gap between dependent dispatches, what
 * awaiting a step costs, products by tuning and by rows, attention of prompts. On a software adapter it only shows that
 * everything runs.
 *
 *   bun bench/gpu-probe.ts [adapter read gap wait linear rows attention] [--toggles NAME,NAME] [--json FILE]
 *
 * For whole models: gpu-rows.ts and gpu.ts.
 */
import { parseArgs } from "node:util";
import { formatTuning, PLAIN, type Tuning } from "../src/base/kernel-tuning.ts";
import { dawn } from "../src/engine/backends/host/dawn.ts";
import { AttentionTrial } from "../src/engine/backends/webgpu/attention-trial.ts";
import { openDevice, type Device } from "../src/engine/backends/webgpu/device.ts";
import { Trial, type TrialKind } from "../src/engine/backends/webgpu/trial.ts";
import { canRun } from "../src/engine/backends/webgpu/tune.ts";
import { USAGE } from "../src/engine/backends/webgpu/usage.ts";
import { quants, type QuantName } from "../src/engine/formats/quant/index.ts";

const { values: flags, positionals } = parseArgs({
  options: { toggles: { type: "string" }, json: { type: "string" } },
  allowPositionals: true,
});
const provider = dawn(flags.toggles);
await provider.open({ software: true });
const device = await openDevice(provider);
const { gpu, facts } = device;

type Row = Readonly<Record<string, string | number>>;
const rows: Row[] = [];
function say(section: string, row: Row): void {
  rows.push({ section, ...row });
  const text = (value: string | number): string =>
    typeof value === "number" ? String(Number(value.toPrecision(4))) : value;
  console.log(section, ...Object.entries(row).map(([name, value]) => `${name}=${text(value)}`));
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

/** Milliseconds from the submit of the dispatches of `record` until they are done; the median of some. */
async function wallMs(record: (pass: GPUComputePassEncoder) => void, expected = false): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i <= (facts.software ? 2 : 20); i++) {
    const encoder = gpu.createCommandEncoder();
    const pass = encoder.beginComputePass();
    record(pass);
    pass.end();
    const startedMs = performance.now();
    device.submit(encoder.finish(), expected && times.length > 0 ? median(times) : undefined);
    await device.wait(() => gpu.queue.onSubmittedWorkDone());
    if (i > 0) times.push(performance.now() - startedMs); // the first one warms up
  }
  return median(times);
}

function pipelineOf(code: string): GPUComputePipeline {
  const module = gpu.createShaderModule({ code });
  return gpu.createComputePipeline({ layout: "auto", compute: { module, entryPoint: "main" } });
}

function bind(pipeline: GPUComputePipeline, ...buffers: GPUBuffer[]): GPUBindGroup {
  const entries = buffers.map((buffer, binding) => ({ binding, resource: { buffer } }));
  return gpu.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });
}

const storage = (size: number): GPUBuffer => gpu.createBuffer({ size, usage: USAGE.storage | USAGE.copyDst });

const READ = (type: string, join: string): string => `
@group(0) @binding(0) var<storage, read> x: array<${type}>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(256) fn main(
  @builtin(workgroup_id) group: vec3<u32>,
  @builtin(num_workgroups) groups: vec3<u32>,
  @builtin(local_invocation_index) t: u32,
) {
  var sum = 0u;
  for (var i = group.x * 256u + t; i < arrayLength(&x); i += groups.x * 256u) { let v = x[i]; sum += ${join}; }
  if (sum == 77u) { y[group.x] = sum; }
}`;

const NEXT = `
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) i: vec3<u32>) { y[i.x] = x[i.x] + 1u; }`;

const BUSY = `
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main(
  @builtin(local_invocation_index) t: u32,
  @builtin(num_workgroups) groups: vec3<u32>,
) {
  var v = y[t];
  for (var k = 0u; k < groups.z * 1000u; k++) { v = v * 1.0001 + 0.5; }
  y[t] = v;
}`;

/** Products of a block type in a tuning, by the trial that searches use. */
async function products(quant: QuantName, kind: TrialKind, tunings: readonly Tuning[]): Promise<void> {
  const dim = facts.software ? 512 : 4096;
  const trial = await Trial.make(device, { quant, dim });
  const { blockBytes, blockLen } = quants[quant];
  for (const tuning of tunings) {
    if (!canRun(device, tuning)) continue;
    const startedMs = performance.now();
    await trial.compile(kind, [tuning]);
    const compileMs = performance.now() - startedMs;
    await trial.time(kind, tuning, 1);
    const repeats = facts.software ? 1 : 16;
    const times: number[] = [];
    for (let i = 0; i < 3; i++) times.push((await trial.time(kind, tuning, repeats)) / repeats);
    const ms = Math.min(...times);
    const { columns, rows: rowsOf } = trial.extents;
    const bytes = (columns * dim * blockBytes) / blockLen;
    const speed = { GBs: bytes / ms / 1e6, TFs: (2 * rowsOf[kind] * columns * dim) / ms / 1e9 };
    say(kind === "gemv" ? "linear" : "rows", {
      quant,
      tuning: formatTuning(tuning),
      us: 1000 * ms,
      ...speed,
      compileMs,
    });
  }
  trial.destroy();
}

/**
 * Attention of a prompt by both kernels, with the heads of a model of 8 B weights, and with heads half and twice as
 * long.
 */
async function attention(rows: number, headDim: number): Promise<void> {
  const [nHeads, nKvHeads] = facts.software ? [2, 1] : [32, 8];
  const shape = { nHeads, nKvHeads, headDim, valueDim: headDim, cacheType: "f16" } as const;
  const trial = await AttentionTrial.make(device, shape, rows);
  for (const tuning of tunings({}, { attention: true })) {
    if (!canRun(device, tuning)) continue;
    await trial.time(tuning, 1); // compiles, and warms up
    const repeats = facts.software ? 1 : 4;
    const times: number[] = [];
    for (let i = 0; i < 3; i++) times.push((await trial.time(tuning, repeats)) / repeats);
    const ms = Math.min(...times);
    const TFs = (2 * rows * rows * nHeads * headDim) / ms / 1e9; // half of the positions, two products
    say("attention", { rows, headDim, tuning: formatTuning(tuning), ms, TFs });
  }
  trial.destroy();
}

const tunings = (...changes: Partial<Tuning>[]): Tuning[] => changes.map((change) => ({ ...PLAIN, ...change }));
const GEMV_TUNINGS = tunings(
  {},
  { columns: 2 },
  { columns: 8 },
  { threads: 32 },
  { threads: 128 },
  { loads16: true },
  { loads16: true, columns: 2 },
  { packed: true },
  { packed: true, columns: 8 },
);
const GEMM_TUNINGS = tunings(
  {},
  { double: true },
  { tileRows: 64 },
  { tileRows: 64, tileColumns: 128 },
  { f16: true },
  { matrix: true },
  { matrix: true, tileRows: 64 },
  { matrix: true, tileRows: 64, double: true },
  { matrix: true, tileRows: 128 },
  { matrix: true, tileRows: 128, double: true },
);

const SECTIONS: Readonly<Record<string, (device: Device) => Promise<void>>> = {
  async adapter() {
    const { subgroupMinSize = 0, subgroupMaxSize = 0 } = gpu.adapterInfo;
    const matrix = device.matrix ? Object.values(device.matrix).join("x") : "none";
    say("adapter", { name: facts.name, subgroups: `${subgroupMinSize}-${subgroupMaxSize}`, matrix });
    say("adapter", { features: facts.features.join() });
    say("adapter", facts.limits);
  },
  async read() {
    const size = facts.software ? 2 ** 22 : Math.min(2 ** 30, facts.limits.maxStorageBufferBindingSize & ~255);
    const [data, out] = [storage(size), storage(4 * 65_536)];
    for (const [type, join] of [
      ["u32", "v"],
      ["vec4<u32>", "(v.x ^ v.y ^ v.z ^ v.w)"],
    ] as const) {
      const pipeline = pipelineOf(READ(type, join));
      const group = bind(pipeline, data, out);
      for (const groups of facts.software ? [64] : [1056, 8448, 33_792]) {
        const ms = await wallMs((pass) => {
          pass.setPipeline(pipeline);
          pass.setBindGroup(0, group);
          pass.dispatchWorkgroups(groups);
        });
        say("read", { type, groups, ms, GBs: size / ms / 1e6 });
      }
    }
    for (const buffer of [data, out]) buffer.destroy();
  },
  async gap() {
    const pipeline = pipelineOf(NEXT);
    const [a, b] = [storage(2 ** 18), storage(2 ** 18)];
    const turns = [bind(pipeline, a, b), bind(pipeline, b, a)];
    const count = facts.software ? 20 : 1000;
    const ms = await wallMs((pass) => {
      pass.setPipeline(pipeline);
      for (let i = 0; i < count; i++) {
        pass.setBindGroup(0, turns[i % 2]!);
        pass.dispatchWorkgroups(8);
      }
    });
    say("gap", { count, usEach: (1000 * ms) / count });
  },
  async wait() {
    const pipeline = pipelineOf(BUSY);
    const group = bind(pipeline, storage(256));
    for (const loops of facts.software ? [1] : [20, 200, 1000]) {
      const record = (pass: GPUComputePassEncoder): void => {
        pass.setPipeline(pipeline);
        pass.setBindGroup(0, group);
        pass.dispatchWorkgroups(1, 1, loops);
      };
      say("wait", { loops, ms: await wallMs(record), expectedMs: await wallMs(record, true) });
    }
  },
  async linear() {
    const types = facts.software ? (["q4_K"] as const) : (["q4_K", "q6_K", "q8_0", "q4_0", "f16"] as const);
    for (const quant of types) await products(quant, "gemv", facts.software ? GEMV_TUNINGS.slice(0, 1) : GEMV_TUNINGS);
  },
  async rows() {
    await products("q4_K", "gemm", facts.software ? GEMM_TUNINGS.slice(0, 1) : GEMM_TUNINGS);
  },
  async attention() {
    if (facts.software && !device.matrix) return attention(160, 64);
    for (const rows of [1024, 4096]) await attention(rows, 128);
    if (!facts.software) for (const headDim of [64, 256]) await attention(1024, headDim);
  },
};

for (const name of positionals.length > 0 ? positionals : Object.keys(SECTIONS)) {
  const section = SECTIONS[name];
  if (!section) throw new Error(`${name}: expected ${Object.keys(SECTIONS).join(", ")}`);
  await section(device);
}
if (flags.json) await Bun.write(flags.json, `${JSON.stringify({ toggles: flags.toggles, rows }, null, 2)}\n`);
process.exit(0);
