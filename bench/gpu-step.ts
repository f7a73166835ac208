/**
 * What a decode step costs whatever the GPU: submits, GPU objects made, time to encode, and bytes moved over
 * those of the weights. Counted in a real session, so that a software adapter tells it as well as a GPU does.
 *
 *   bun bench/gpu-step.ts FILE.gguf [--tokens 8]
 */
import { parseArgs } from "node:util";
import { loadProgram } from "../src/arch/index.ts";
import { openDevice } from "../src/backend/webgpu/device.ts";
import { makeShift } from "../src/backend/webgpu/kv-cache.ts";
import { makePlan, type Plan } from "../src/backend/webgpu/plan.ts";
import { WebGpuSession } from "../src/backend/webgpu/session.ts";
import { openGguf } from "../src/gguf/read.ts";

const CTX_LEN = 256;

/** What makes a GPU object that lives longer than a submit. */
const MAKERS = [
  "createBuffer",
  "createBindGroup",
  "createBindGroupLayout",
  "createPipelineLayout",
  "createShaderModule",
  "createComputePipeline",
  "createComputePipelineAsync",
  "createQuerySet",
  "createTexture",
  "createSampler",
] as const satisfies readonly (keyof GPUDevice)[];

const { values: flags, positionals } = parseArgs({
  options: { tokens: { type: "string", default: "8" } },
  allowPositionals: true,
});
const [file] = positionals;
if (!file) throw new Error("usage: gpu-step.ts FILE.gguf [--tokens 8]");
const count = Math.min(Number(flags.tokens), CTX_LEN - 1);
const device = await openDevice();
const program = loadProgram(openGguf(file));
const options = { ctxLen: CTX_LEN, slots: 1, precise: false, threads: 0, cacheDir: undefined };
const plan = await makePlan(device, program, options);
const shift = await makeShift(device, program, { plan, ctxLen: CTX_LEN });
const session = new WebGpuSession({ device, program, options, plan, shift });
const step = (start: number) => session.run([{ slot: 0, start, tokens: Int32Array.of(start), logits: "last" }]);
await step(0); // compiles what the first run of a driver compiles
const seen = watch(device.gpu);
for (let i = 1; i <= count; i++) await step(i);
const { submits, objects, encodesMs } = seen.stop();
const traffic = trafficOf(plan, { position: count, ctxLen: CTX_LEN });
console.log(`${device.facts.name}, ${count} tokens`);
console.table({
  "dispatches per token": plan.few.dispatches.length,
  "submits per token": submits / count,
  "GPU objects per token, but for the encoder and its pass": objects / count,
  "encoding, median ms": encodesMs.toSorted((a, b) => a - b)[Math.floor(encodesMs.length / 2)],
  "bytes moved over the weights'": traffic / plan.bytes.weights,
});
session.close();
process.exit(0);

/** Bytes that a decode step of one row at `position` reads and writes, each operand once. */
export function trafficOf({ few, caches }: Plan, { position, ctxLen }: { position: number; ctxLen: number }): number {
  let bytes = 0;
  for (const { source } of few.dispatches) {
    for (const operand of source.operands) {
      // Attention leaves parts of long contexts only.
      if (operand.kind === "activation" && operand.value.buf.name === "attention.parts") continue;
      if (operand.kind === "activation") bytes += 4 * operand.value.buf.dim * operand.value.times;
      else if (operand.kind === "vector") bytes += 4 * (operand.weight?.inDim ?? 0);
      else if (operand.kind === "constant") bytes += operand.values?.byteLength ?? 0;
      // An embedding reads one row of its table, of some thousand: it is left out.
      else if (operand.kind === "matrix" && source.kernel !== "embed") bytes += few.bufferOf(operand).size;
    }
  }
  // Every layer reads its keys and values up to the position, once.
  const kv = caches.reduce((sum, { keys, values }) => sum + keys.size + values.size, 0);
  return bytes + (kv / ctxLen) * (position + 1);
}

/** Counts submits and created objects, and takes the times from each new encoder to its submit. */
export function watch(gpu: GPUDevice): { stop(): { submits: number; objects: number; encodesMs: number[] } } {
  let [submits, objects, startedMs] = [0, 0, 0];
  const encodesMs: number[] = [];
  const undo: (() => void)[] = [];
  const wrap = (owner: object, name: string, before: () => void): void => {
    const own = Reflect.get(owner, name) as (...args: unknown[]) => unknown; // methods of WebGPU by name
    const wrapped = (...args: unknown[]): unknown => {
      before();
      return own.apply(owner, args);
    };
    Object.defineProperty(owner, name, { value: wrapped, configurable: true });
    undo.push(() => void Reflect.deleteProperty(owner, name));
  };
  for (const name of MAKERS) wrap(gpu, name, () => void objects++);
  wrap(gpu, "createCommandEncoder", () => void (startedMs = performance.now()));
  wrap(gpu.queue, "submit", () => {
    submits++;
    encodesMs.push(performance.now() - startedMs);
  });
  return {
    stop() {
      for (const each of undo) each();
      return { submits, objects, encodesMs };
    },
  };
}
