/** Lists and tunes the GPUs of this machine for the command line. */
export { listAdapters } from "../webgpu/adapters.ts";
export { tuningsOf } from "../webgpu/choose-tuning.ts";
export { openDevice } from "../webgpu/device.ts";
export { dawn } from "./dawn.ts";
export { tuningFile } from "./tuning-file.ts";
