/** What a person who asks about this machine's GPU needs of its backend. */
export { listAdapters } from "../webgpu/adapters.ts";
export { tuningsOf } from "../webgpu/choose-tuning.ts";
export { openDevice } from "../webgpu/device.ts";
export { dawn } from "./dawn.ts";
export { tuningFile } from "./tuning-file.ts";
