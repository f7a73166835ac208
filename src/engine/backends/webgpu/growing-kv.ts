/**
 * The buffers of the KV cache. They grow with the slots and positions in use, so that a long context takes no memory
 * before a text fills it. All slots have room for the same number of positions.
 */
import { AppError, assert, messageOf } from "../../../base/index.ts";
import type { Device } from "./device.ts";
import { USAGE } from "./usage.ts";

/** Slots, and positions in each. */
export interface KvSize {
  readonly slots: number;
  readonly positions: number;
}

/** A layer, and its bytes per position, or per row of a memory. */
export interface KvShape {
  readonly layer: number;
  readonly keyBytes: number;
  readonly valueBytes: number;
}

/** The buffers of a layer, (slots, positions) each. Growth replaces them. */
export interface KvBuffers extends KvShape {
  keys: GPUBuffer;
  values: GPUBuffer;
  size: KvSize;
}

export interface GrowingKv {
  readonly caches: ReadonlyMap<number, KvBuffers>;
  /** Bytes at the largest size. */
  readonly bytes: number;
  /** Returns whether there is room for this size. */
  has(wanted: KvSize): boolean;
  /**
   * Makes room, up to `most`; throws `busy` if the device has none. Positions keep their content.
   * @param onMoved called with the layers whose buffers were replaced
   */
  reach(wanted: KvSize, onMoved: (layers: ReadonlySet<number>) => void): Promise<void>;
  /** Replaces large buffers without content by small initial ones. */
  shrink(): Promise<void>;
  destroy(): void;
}

interface GrowingKvOptions {
  /** For messages. */
  readonly path: string;
  readonly layers: readonly KvShape[];
  readonly most: KvSize;
}

/** A cache of at most this many bytes has its full size from the start. */
const WHOLE_BYTES = 16 * 2 ** 20;
/** Positions of the first buffers, and the unit of growth. */
const UNIT = 1024;
/** Maximum bytes of new buffers for several layers at once; the old ones are freed in between. */
const GROUP_BYTES = 256 * 2 ** 20;

const bytesOf = (layers: readonly KvShape[], { slots, positions }: KvSize): number =>
  layers.reduce((sum, { keyBytes, valueBytes }) => sum + (keyBytes + valueBytes) * slots * positions, 0);

/** Descriptors of a layer's buffers. */
export const kvDescriptors = (
  { layer, keyBytes, valueBytes }: KvShape,
  { slots, positions }: KvSize,
): [keys: GPUBufferDescriptor, values: GPUBufferDescriptor] => {
  const usage = USAGE.storage | USAGE.copySrc | USAGE.copyDst;
  const descriptor = (what: string, bytes: number): GPUBufferDescriptor => {
    return {
      label: `${what} of layer ${layer}`,
      size: Math.max(16, Math.ceil((bytes * slots * positions) / 16) * 16),
      usage,
    };
  };
  return [descriptor("keys", keyBytes), descriptor("values", valueBytes)];
};

/** Allocates the whole cache once, so that a load finds out whether it fits. Throws `too_large`. */
export async function makeGrowingKv(device: Device, { path, layers, most }: GrowingKvOptions): Promise<GrowingKv> {
  const allocate = async (some: readonly KvShape[], size: KvSize): Promise<KvBuffers[]> => {
    const make = (): GPUBuffer[] =>
      some.flatMap((each) => kvDescriptors(each, size).map((descriptor) => device.gpu.createBuffer(descriptor)));
    const buffers = some.length > 0 ? await device.allocate(`${path}: KV cache`, make) : [];
    // Two buffers per layer
    return some.map((each, i) => ({ ...each, keys: buffers[2 * i]!, values: buffers[2 * i + 1]!, size }));
  };
  const all = await allocate(layers, most);
  const caches = new Map(all.map((each) => [each.layer, each]));
  let reached = most;
  const has = (wanted: KvSize): boolean => isWithin(wanted, reached);
  let isDestroyed = false;
  const destroyAll = (): void => all.forEach(destroyBuffers);
  /** Replaces the buffers of some layers by larger ones with their content. */
  const move = async (group: readonly KvBuffers[], size: KvSize): Promise<void> => {
    const next = await allocate(group, size).catch((error: unknown) => {
      const text = `out of memory: keys and values of ${size.positions} tokens: ${messageOf(error)}`;
      throw error instanceof AppError && error.code === "too_large" ? new AppError("busy", text) : error;
    });
    if (isDestroyed) {
      next.forEach(destroyBuffers);
      throw new AppError("cancelled", "the model was closed while its KV cache grew");
    }
    const encoder = device.gpu.createCommandEncoder();
    for (const [i, old] of group.entries()) copySlots(encoder, old, next[i]!);
    device.submit(encoder.finish());
    for (const [i, old] of group.entries()) {
      destroyBuffers(old);
      Object.assign(old, next[i]!);
    }
  };

  return {
    caches,
    bytes: all.reduce((sum, { keys, values }) => sum + keys.size + values.size, 0),
    has,
    async reach(wanted, onMoved) {
      assert(isWithin(wanted, most), "a KV cache grows within its limits");
      const size = grown(reached, wanted, most);
      for (const group of groupsOf(
        all.filter((each) => !isWithin(size, each.size)),
        size,
      )) {
        await move(group, size);
        onMoved(new Set(group.map(({ layer }) => layer)));
        await device.flush(); // frees the old buffers
      }
      reached = size;
    },
    async shrink() {
      if (bytesOf(layers, most) <= WHOLE_BYTES) return;
      destroyAll();
      reached = { slots: 1, positions: Math.min(UNIT, most.positions) };
      for (const [i, each] of (await allocate(layers, reached)).entries()) Object.assign(all[i]!, each);
    },
    destroy() {
      isDestroyed = true;
      destroyAll();
    },
  };
}

const isWithin = (size: KvSize, most: KvSize): boolean => size.slots <= most.slots && size.positions <= most.positions;

/** At least twice as many positions, so that a growing text is moved only a few times. */
function grown(now: KvSize, wanted: KvSize, most: KvSize): KvSize {
  const enough = Math.max(2 * now.positions, Math.ceil(wanted.positions / UNIT) * UNIT);
  return {
    slots: Math.max(now.slots, wanted.slots),
    positions: wanted.positions <= now.positions ? now.positions : Math.min(most.positions, enough),
  };
}

function groupsOf(layers: readonly KvBuffers[], size: KvSize): KvBuffers[][] {
  const groups: KvBuffers[][] = [];
  for (const layer of layers) {
    const last = groups.at(-1);
    if (last && bytesOf([...last, layer], size) <= GROUP_BYTES) last.push(layer);
    else groups.push([layer]);
  }
  return groups;
}

function copySlots(encoder: GPUCommandEncoder, from: KvBuffers, to: KvBuffers): void {
  for (const [part, bytes] of [
    ["keys", from.keyBytes],
    ["values", from.valueBytes],
  ] as const) {
    const [each, stride] = [bytes * from.size.positions, bytes * to.size.positions];
    if (bytes === 0) continue;
    for (let slot = 0; slot < from.size.slots; slot++) {
      encoder.copyBufferToBuffer(from[part], slot * each, to[part], slot * stride, each);
    }
  }
}

function destroyBuffers({ keys, values }: KvBuffers): void {
  keys.destroy();
  values.destroy();
}
