/** Where WebGPU comes from: of a page, or of a package that gives it to a process. */
import { AppError } from "../../../base/index.ts";
import { makePump, type Pump } from "./pace.ts";

/** One for each process or page. Owns what is open as long as that lives. */
export interface GpuProvider {
  /**
   * The entry to WebGPU, the same each time. Throws `unsupported` where there is none.
   * @param options.software where no driver is installed, take one that computes on the CPU
   */
  open(options?: { readonly software?: boolean }): Promise<GPU>;
  /** Every call that the GPU answers later goes through it. */
  readonly pump: Pump;
  /** The device, once it is open. */
  device?: Promise<unknown>;
}

/** Of a page, or of a runtime that has WebGPU. */
export function pageGpu(): GpuProvider {
  return {
    pump: makePump(),
    open() {
      const gpu = (globalThis.navigator as { gpu?: GPU } | undefined)?.gpu;
      return gpu ? Promise.resolve(gpu) : Promise.reject(new AppError("unsupported", "there is no WebGPU here"));
    },
  };
}
