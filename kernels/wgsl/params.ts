/**
 * The parameters of a kernel, by name. Their order and types follow `struct Params` in its source, where `rowBytes` is
 * spelt `row_bytes`.
 */
import { AppError } from "../../src/base/index.ts";
import type { Params } from "./dispatch.ts";
import { KERNELS, type KernelName } from "./sources.ts";

interface Field {
  readonly name: string;
  readonly type: "u32" | "f32";
}

/** In the order of the struct. */
export function fieldsOf(kernel: KernelName): Field[] {
  const source = KERNELS[kernel].replace(/\/\/.*$/gm, "");
  const [, struct = ""] = /struct Params\s*\{([^}]*)\}/.exec(source) ?? [];
  return [...struct.matchAll(/(\w+):\s*(u32|f32)/g)].map(([, name, type]) => ({
    name: name!.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase()),
    type: type as Field["type"], // one of the two
  }));
}

/**
 * Writes parameters at byte `at`, in the device's format. Devices are little-endian.
 * Throws `runner` if a parameter is unknown or missing, or there is no room in `view`.
 */
export function writeParams(view: DataView, at: number, { kernel, params }: { kernel: KernelName; params: Params }) {
  const fields = fieldsOf(kernel);
  const [expected, found] = [fields.map(({ name }) => name), Object.keys(params)];
  const isSame = expected.length === found.length && expected.every((name) => Object.hasOwn(params, name));
  if (!isSame) {
    const text = `kernel ${kernel}: expected the parameters ${expected.toSorted()}, got ${found.toSorted()}`;
    throw new AppError("runner", text);
  }
  for (const [i, { name, type }] of fields.entries()) {
    if (type === "u32") view.setUint32(at + 4 * i, params[name]!, true);
    else view.setFloat32(at + 4 * i, params[name]!, true);
  }
}
