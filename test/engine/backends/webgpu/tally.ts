/**
 * Counts a process's requests to its GPU: submits, encoded passes, created objects, bytes mapped for reading, and reads
 * before which more work was submitted.
 */

export interface Tally {
  submits: number;
  passes: number;
  objects: number;
  bytesRead: number;
  /** Results that were read after a submit that came later than the request for them. */
  readsBehind: number;
}

/** Methods that create objects which outlive a submit. */
export const MAKERS = [
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

/** Counts from now on, for as long as the device lives. */
export function tallyOf(gpu: GPUDevice): Tally {
  const tally: Tally = { submits: 0, passes: 0, objects: 0, bytesRead: 0, readsBehind: 0 };
  type Method = (this: unknown, ...args: unknown[]) => unknown;
  const listen = (owner: object, name: string, heard: (made: unknown, args: readonly unknown[]) => void): void => {
    const own = Reflect.get(owner, name) as Method; // a method of WebGPU, by its name
    const value = (...args: unknown[]): unknown => {
      const made = own.apply(owner, args);
      heard(made, args);
      return made;
    };
    Object.defineProperty(owner, name, { value });
  };
  for (const name of MAKERS) {
    listen(gpu, name, (made) => {
      tally.objects++;
      if (name !== "createBuffer") return;
      let submits = 0;
      listen(made as GPUBuffer, "mapAsync", (_, [, , size]) => {
        tally.bytesRead += Number(size);
        submits = tally.submits;
      });
      listen(made as GPUBuffer, "getMappedRange", () => void (tally.readsBehind += Number(tally.submits > submits)));
    });
  }
  listen(gpu, "createCommandEncoder", (made) => {
    listen(made as GPUCommandEncoder, "beginComputePass", () => void tally.passes++);
  });
  listen(gpu.queue, "submit", () => void tally.submits++);
  return tally;
}
