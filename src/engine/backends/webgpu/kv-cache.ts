/** Operations on the KV cache between runs: copying a prefix to another slot, and the context shift. */
import type { CacheType } from "../../../../kernels/wgsl/cache.ts";
import type { Program } from "../../program/backend.ts";
import { writeParams } from "../../../../kernels/wgsl/params.ts";
import { assert } from "../../../base/index.ts";
import { ropeShift } from "../../program/rope.ts";
import { keepingSteps } from "../../program/sequence-state.ts";
import type { KvState } from "../../program/kept-state.ts";
import type { RopeScaling, Step } from "../../program/step.ts";
import type { Device } from "./device.ts";
import type { KvBuffers } from "./growing-kv.ts";
import type { Plan } from "./plan.ts";
import { GRID_MAX } from "./record.ts";
import { PARAMS_STRIDE } from "./memory.ts";
import { USAGE } from "./usage.ts";

/** Bytes of a cache that move at once, through another buffer, because WebGPU copies between different buffers only. */
const MOVED_BYTES = 4 * 2 ** 20;

/** A layer's cache and the RoPE of its keys. */
interface CacheLayer extends KvState {
  /** Values of a key before its value; 0: values have a separate buffer. */
  readonly skip: number;
  readonly buffers: KvBuffers;
}

export interface ShiftParts {
  readonly device: Device;
  readonly layers: readonly CacheLayer[];
  readonly ctxLen: number;
  /** The format of keys and values. */
  readonly cacheType: CacheType;
  readonly pipeline: GPUComputePipeline;
  /** The intermediate buffer for moves. */
  readonly staging: GPUBuffer;
  /** Cosines and sines of one rotation per layer, and its parameters. */
  readonly turns: readonly {
    readonly angles: GPUBuffer;
    readonly params: GPUBuffer;
  }[];
  destroy(): void;
}

/** Prepares everything for a shift, which then allocates no memory. */
export async function makeShift(
  device: Device,
  { steps, weights }: Program,
  { plan, ctxLen }: { plan: Plan; ctxLen: number },
): Promise<ShiftParts> {
  const pipeline = await device.pipeline("shift_keys", [plan.cacheType]);
  const layers = layersOf(steps, plan);
  const { storage, uniform, copyDst, copySrc } = USAGE;
  const buffers = await device.allocate(`${weights.path}: context shift`, () => [
    device.gpu.createBuffer({ label: "shift", size: MOVED_BYTES, usage: copySrc | copyDst }),
    ...layers.flatMap(({ rope }) => [
      device.gpu.createBuffer({ label: "turn", size: 4 * (rope?.rotaryDim ?? 2), usage: storage | copyDst }),
      device.gpu.createBuffer({ label: "turn parameters", size: PARAMS_STRIDE, usage: uniform | copyDst }),
    ]),
  ]);
  const [staging, ...rest] = buffers;
  const turns = layers.map((_, i) => ({ angles: rest[2 * i]!, params: rest[2 * i + 1]! })); // two per layer
  const destroy = (): void => buffers.forEach((buffer) => buffer.destroy());
  return {
    device,
    layers,
    ctxLen,
    cacheType: plan.cacheType,
    pipeline,
    staging: staging!,
    turns,
    destroy,
  };
}

function layersOf(steps: readonly Step[], plan: Plan): CacheLayer[] {
  return keepingSteps(steps).flatMap(({ step, state }) => {
    if (state.kind !== "kv") return [];
    const buffers = plan.caches.get(state.layer);
    assert(buffers, `no KV cache for layer ${state.layer}`);
    const skip = step.op === "latentAttention" ? step.headDim - step.valueDim : 0;
    return [{ ...state, buffers, skip }];
  });
}

/** Copies the first `length` tokens from one slot to another. */
export function copyTokens(
  parts: ShiftParts,
  { from, to, length }: { from: number; to: number; length: number },
): void {
  if (from === to || length === 0) return;
  const encoder = parts.device.gpu.createCommandEncoder();
  for (const layer of parts.layers) {
    const { positions } = layer.buffers.size;
    const move = { from: from * positions, to: to * positions, count: length };
    for (const each of cachedSides(layer)) moveTokens(encoder, parts, each, move);
  }
  parts.device.submit(encoder.finish());
}

/** Drops `discard` tokens after the first `keep`, and rotates the keys that move down. */
export function shiftTokens(
  parts: ShiftParts,
  { slot, keep, discard, length }: { slot: number; keep: number; discard: number; length: number },
): void {
  const { device } = parts;
  const count = length - keep - discard;
  if (count === 0 || discard === 0) return;
  const encoder = device.gpu.createCommandEncoder();
  for (const [i, layer] of parts.layers.entries()) {
    const to = slot * layer.buffers.size.positions + keep;
    for (const each of cachedSides(layer)) moveTokens(encoder, parts, each, { from: to + discard, to, count });
    if (layer.rope) shiftKeys(encoder, parts, i, { rope: layer.rope, first: to, count, discard });
  }
  device.submit(encoder.finish());
}

/** The buffers of a layer with their bytes per token. Values that are parts of keys have none. */
export function cachedSides({ buffers }: Pick<CacheLayer, "buffers">) {
  const { keys, values, keyBytes, valueBytes, size } = buffers;
  const sized = [
    { buffer: keys, tokenBytes: keyBytes, positions: size.positions },
    { buffer: values, tokenBytes: valueBytes, positions: size.positions },
  ];
  return sized.filter(({ tokenBytes }) => tokenBytes > 0);
}

/** Moves tokens piece by piece, the lowest first, so that a move never overwrites tokens still to move. */
function moveTokens(
  encoder: GPUCommandEncoder,
  { staging }: ShiftParts,
  { buffer, tokenBytes }: { buffer: GPUBuffer; tokenBytes: number },
  { from, to, count }: { from: number; to: number; count: number },
): void {
  const each = Math.max(1, Math.floor(MOVED_BYTES / tokenBytes));
  for (let done = 0; done < count; done += each) {
    const size = Math.min(each, count - done) * tokenBytes;
    encoder.copyBufferToBuffer(buffer, (from + done) * tokenBytes, staging, 0, size);
    encoder.copyBufferToBuffer(staging, 0, buffer, (to + done) * tokenBytes, size);
  }
}

function shiftKeys(
  encoder: GPUCommandEncoder,
  { device, pipeline, turns, layers, ctxLen }: ShiftParts,
  index: number,
  { rope, first, count, discard }: { rope: RopeScaling; first: number; count: number; discard: number },
): void {
  const { angles, params } = turns[index]!; // one per layer
  const { nKvHeads, keyDim, skip, buffers } = layers[index]!;
  const { cos, sin } = ropeShift(rope, { discard, ctxLen });
  const pairs = rope.rotaryDim / 2;
  const strides = rope.style === "norm" ? { step: 2, apart: 1 } : { step: 1, apart: pairs };
  const words = new DataView(new ArrayBuffer(32));
  const shape = { first, count, heads: nKvHeads, headDim: keyDim, skip, pairs, ...strides };
  writeParams(words, 0, { kernel: "shift_keys", params: shape });
  device.gpu.queue.writeBuffer(params, 0, words.buffer);
  device.gpu.queue.writeBuffer(angles, 0, Float32Array.from([...cos, ...sin]));
  const groups = count * nKvHeads;
  const z = Math.ceil(groups / GRID_MAX);
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  const entries = [buffers.keys, angles, params].map((buffer, binding) => ({ binding, resource: { buffer } }));
  pass.setBindGroup(0, device.gpu.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries }));
  pass.dispatchWorkgroups(Math.ceil(groups / z), 1, z);
  pass.end();
}
