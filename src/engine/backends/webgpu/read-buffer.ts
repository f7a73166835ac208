/** Reads parts of buffers, in the order of the work that was submitted before. */
import type { Device } from "./device.ts";
import { MAP_READ, USAGE } from "./usage.ts";

interface BufferPart {
  readonly buffer: GPUBuffer;
  /** In bytes, a multiple of 4 each. */
  readonly offset: number;
  readonly size: number;
}

/** The bytes of all parts, one after another. Later work may overwrite the parts at once. */
export async function readBuffer(device: Device, parts: readonly BufferPart[]): Promise<Uint8Array<ArrayBuffer>> {
  const size = parts.reduce((sum, part) => sum + part.size, 0);
  const make = (): GPUBuffer[] => [
    device.gpu.createBuffer({ label: "copy", size, usage: USAGE.mapRead | USAGE.copyDst }),
  ];
  const [copy] = await device.allocate("a copy for the host", make);
  const encoder = device.gpu.createCommandEncoder();
  let at = 0;
  for (const part of parts) {
    encoder.copyBufferToBuffer(part.buffer, part.offset, copy!, at, part.size);
    at += part.size;
  }
  device.submit(encoder.finish());
  try {
    await device.wait(() => copy!.mapAsync(MAP_READ));
    return new Uint8Array(copy!.getMappedRange().slice(0));
  } finally {
    copy!.destroy();
  }
}
