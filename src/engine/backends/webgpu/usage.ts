/** Usage flags of buffers as numbers: outside browsers `GPUBufferUsage` is not a global. (WebGPU, § 5.1) */
export const USAGE = {
  mapRead: 0x1,
  copySrc: 0x4,
  copyDst: 0x8,
  uniform: 0x40,
  storage: 0x80,
  queryResolve: 0x200,
} as const;
export const MAP_READ = 0x1; // GPUMapMode.READ
