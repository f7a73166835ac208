/**
 * Counts a process's requests to its GPU: calls, submits, encoded passes, created objects, bytes mapped for reading,
 * and reads before which more work was submitted.
 */

export interface Tally {
  submits: number;
  passes: number;
  objects: number;
  bytesRead: number;
  /** Results that were read after a submit that came later than the request for them. */
  readsBehind: number;
  /** Calls of methods of the device, its queue, encoders, passes and buffers, by name. */
  readonly calls: Record<string, number>;
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
  const tally: Tally = { submits: 0, passes: 0, objects: 0, bytesRead: 0, readsBehind: 0, calls: {} };
  const counted = new Set<object>();
  /** Counts calls of all methods of an object's class. */
  const countCalls = (made: unknown): void => {
    const owner = Object.getPrototypeOf(made) as object;
    if (counted.has(owner)) return;
    counted.add(owner);
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(owner))) {
      if (name === "constructor" || typeof value !== "function") continue;
      listen(owner, name, () => (tally.calls[name] = (tally.calls[name] ?? 0) + 1));
    }
  };
  type Method = (this: unknown, ...args: unknown[]) => unknown;
  const listen = (owner: object, name: string, onCall: (made: unknown, args: readonly unknown[]) => void): void => {
    const own = Reflect.get(owner, name) as Method; // a method of WebGPU, by its name
    const value = function (this: unknown, ...args: unknown[]): unknown {
      const made = own.apply(this, args);
      onCall(made, args);
      return made;
    };
    Object.defineProperty(owner, name, { value });
  };
  countCalls(gpu);
  countCalls(gpu.queue);
  for (const name of MAKERS) {
    listen(gpu, name, (made) => {
      tally.objects++;
      if (name !== "createBuffer") return;
      countCalls(made);
      let submits = 0;
      listen(made as GPUBuffer, "mapAsync", (_, [, , size]) => {
        tally.bytesRead += Number(size);
        submits = tally.submits;
      });
      listen(made as GPUBuffer, "getMappedRange", () => void (tally.readsBehind += Number(tally.submits > submits)));
    });
  }
  listen(gpu, "createCommandEncoder", (made) => {
    countCalls(made);
    listen(made as GPUCommandEncoder, "beginComputePass", (pass) => {
      countCalls(pass);
      tally.passes++;
    });
  });
  listen(gpu.queue, "submit", () => void tally.submits++);
  return tally;
}
