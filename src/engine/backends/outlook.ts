/** What models will run on, known before any is loaded. */
import { dawn, mayHaveGpu } from "./host/dawn.ts";
import { chooseBackend } from "./registry.ts";
import { adapterFacts, requestAdapter } from "./webgpu/adapters.ts";

export interface Outlook {
  /** As in `backends`. */
  readonly backend: string;
  /** The GPU's name; undefined: no GPU. */
  readonly gpu?: string;
}

/** What a backend of that name comes to here. Throws `unsupported`. Opens drivers where `needsDriver` says so. */
export async function outlookOf(name: string): Promise<Outlook> {
  const { name: backend } = await chooseBackend(name);
  return backend === "webgpu" ? { backend, gpu: adapterFacts(await requestAdapter(dawn())).name } : { backend };
}

/** Whether only a GPU's driver can tell what a backend of that name comes to. */
export const needsDriver = (name: string): boolean => name === "webgpu" || (name === "auto" && mayHaveGpu());
