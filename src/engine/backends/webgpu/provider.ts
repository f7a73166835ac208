/** The source of WebGPU: a page, or a package for a process. */
import { AppError } from "../../../base/index.ts";
import { makePump, type Pump } from "./pace.ts";

/** One per process or page. Owns what is open for as long as that lives. */
export interface GpuProvider {
  /**
   * The entry to WebGPU, always the same. Throws `unsupported` if there is no WebGPU.
   * @param options.software without a driver, uses one that computes on the CPU
   */
  open(options?: { readonly software?: boolean }): Promise<GPU>;
  /** Every call that the GPU answers later goes through it. */
  readonly pump: Pump;
  /** The device, once open. */
  device?: Promise<unknown>;
}

/** The provider of a page, or of a runtime with WebGPU. */
export function pageGpu(): GpuProvider {
  return {
    pump: makePump(),
    open() {
      const gpu = (globalThis.navigator as { gpu?: GPU } | undefined)?.gpu;
      return gpu ? Promise.resolve(gpu) : Promise.reject(new AppError("unsupported", "there is no WebGPU here"));
    },
  };
}
