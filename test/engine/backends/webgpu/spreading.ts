/** Runs a model over two adapters, each of which has room for a part; several-gpus.test.ts reads its output. */
import { loadProgram } from "../../../../src/engine/architectures/index.ts";
import { dawn } from "../../../../src/engine/backends/host/dawn.ts";
import { otherGpus } from "../../../../src/engine/backends/host/other-gpus.ts";
import { webGpuBackend } from "../../../../src/engine/backends/host/webgpu.ts";
import { chooseBackend } from "../../../../src/engine/backends/index.ts";
import { openDevice, type Device } from "../../../../src/engine/backends/webgpu/device.ts";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import type { Session } from "../../../../src/engine/program/backend.ts";
import { nmse } from "../compare.ts";
import { exercise, options } from "../exercise.ts";

export interface Spread extends Pick<Session, "gpuLayers" | "placement" | "backend" | "device"> {
  /** The distance to the results of one adapter. */
  readonly distance: number;
}

const [path, adapter] = process.argv.slice(2) as [string, string];
const large = { ...options, ctxLen: 2048, slots: 8 };
const backend = await chooseBackend("webgpu", { adapter });
const gguf = openGguf(path);
const program = loadProgram(gguf);
const whole = await backend.load(program, large);
const expected = await exercise(whole);
whole.close();

/** From now on, a device refuses buffers beyond a total of `bytes`. */
function limit({ gpu }: Device, bytes: number): void {
  let left = bytes;
  const create = gpu.createBuffer.bind(gpu);
  gpu.createBuffer = (descriptor) => {
    const hasRoom = descriptor.size <= left;
    const buffer = create(hasRoom ? descriptor : { ...descriptor, size: 2 ** 50 }); // refused like one without room
    if (!hasRoom) return buffer;
    left -= descriptor.size;
    const destroy = buffer.destroy.bind(buffer);
    return Object.assign(buffer, { destroy: () => [destroy(), (left += descriptor.size)][0] });
  };
}

const bytes = await webGpuBackend.neededBytes!(program, large);
const [second] = await otherGpus(dawn(), adapter);
limit(await openDevice(dawn()), 0.7 * bytes);
limit(await openDevice(second!), 0.9 * bytes);
const session = await backend.load(program, large);
const distance = nmse(await exercise(session), expected);
const { gpuLayers, placement, backend: name, device } = session;
session.close();
gguf.close();
console.log(
  JSON.stringify({
    ...(gpuLayers && { gpuLayers }),
    ...(placement && { placement }),
    backend: name,
    device,
    distance,
  } satisfies Spread),
);
process.exit(0); // a driver's threads may remain
