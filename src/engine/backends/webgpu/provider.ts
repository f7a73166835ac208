/** The source of WebGPU: a page, or a package for a process. */
import { AppError } from "../../../base/index.ts";
import { makePump, type Pump } from "./device-polling.ts";

export interface OpenOptions {
  /** Without a driver, uses one that computes on the CPU. */
  readonly software?: boolean;
  /** The adapter to use: a part of its name that no other name has; in a list separated by commas, the first. */
  readonly adapter?: string | undefined;
}

/** One per process or page. Owns the instance, the device and the pump for its lifetime. */
export interface GpuProvider {
  /**
   * The entry to WebGPU, always the same: the options of the first call decide. Throws `unsupported` if there is no
   * WebGPU, or no such adapter.
   */
  open(options?: OpenOptions): Promise<GPU>;
  /**
   * All adapters by driver's name, each with an entry that has only that adapter; absent: adapters have no names here.
   */
  named?(): Promise<readonly { readonly name: string; readonly gpu: GPU }[]>;
  /** The driver's name for the adapter, if several are in use. */
  name?: string;
  /** Every call that the GPU answers later goes through the pump. */
  readonly pump: Pump;
  /** The device, once open. */
  device?: Promise<unknown>;
  /** The other adapters that a large model may use; undefined until looked for. */
  others?: Promise<readonly GpuProvider[]>;
}

/** The provider of a page, or of a runtime with WebGPU. */
export function pageGpu(): GpuProvider {
  return {
    pump: makePump(),
    open({ adapter } = {}) {
      if (adapter !== undefined) return Promise.reject(new AppError("unsupported", "adapters have no names here"));
      const gpu = (globalThis.navigator as { gpu?: GPU } | undefined)?.gpu;
      return gpu ? Promise.resolve(gpu) : Promise.reject(new AppError("unsupported", "there is no WebGPU here"));
    },
  };
}
