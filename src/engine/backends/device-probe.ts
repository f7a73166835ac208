/** The device that models will run on, known before any model is loaded. */
import { dawn, mayHaveGpu } from "./host/dawn.ts";
import { chooseBackend } from "./registry.ts";
import { adapterFacts, requestAdapter } from "./webgpu/adapters.ts";

export interface ProbedDevice {
  /** A name in `backends`. */
  readonly backend: string;
  /** The GPU's name; undefined: no GPU. */
  readonly gpu?: string;
}

/**
 * The device for a backend name. Throws `unsupported`. Opens drivers if `needsDriver` returns true.
 * @param adapter a part of the GPU's name; undefined: the best
 */
export async function probeDevice(name: string, adapter?: string): Promise<ProbedDevice> {
  const { name: backend } = await chooseBackend(name, { adapter });
  return backend === "webgpu" ? { backend, gpu: adapterFacts(await requestAdapter(dawn())).name } : { backend };
}

/** Returns whether a GPU's driver is needed to resolve a backend name. */
export const needsDriver = (name: string): boolean => name === "webgpu" || (name === "auto" && mayHaveGpu());
