/**
 * Tries attention by subgroup matrices in a process with a driver: with the kernel as it is, and with a fault in it.
 * attention-matrix.test.ts starts it and reads its output.
 */
import { dawn } from "../../../../src/engine/backends/host/dawn.ts";
import { tryMatrices } from "../../../../src/engine/backends/webgpu/choose-attention.ts";
import { openDevice } from "../../../../src/engine/backends/webgpu/device.ts";

/** A line's sums stay relative to an earlier peak. */
const FAULT = { from: "(workgroupUniformLoad(&raised) == tile)", to: "(workgroupUniformLoad(&raised) == 0u)" };

const shape = { nHeads: 2, nKvHeads: 1, headDim: 64, valueDim: 64, cacheType: "q8_0" } as const;
const provider = dawn();
const { right } = await tryMatrices(await openDevice(provider), shape);
delete provider.device; // the next one has compiled nothing yet
const device = await openDevice(provider);
const create = device.gpu.createShaderModule.bind(device.gpu);
let faults = 0;
device.gpu.createShaderModule = (descriptor) => {
  const code = descriptor.code.replace(FAULT.from, FAULT.to);
  if (code !== descriptor.code) faults++;
  return create({ ...descriptor, code });
};
const broken = await tryMatrices(device, shape);
console.log(JSON.stringify({ right, faults, broken }));
process.exit();
