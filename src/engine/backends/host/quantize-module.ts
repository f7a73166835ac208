/** Reads the quantizers that are compiled to WebAssembly. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { AppError } from "../../../base/index.ts";
import { damageOf, libraryFolder } from "./simd-library.ts";

const FILE = "quantize.wasm";

/**
 * The module for `QuantizeKernel`; undefined if this processor's WebAssembly has no SIMD. Throws `bad_file` if it is
 * missing or damaged.
 */
export function quantizeModule(folder: string = libraryFolder()): WebAssembly.Module | undefined {
  const file = join(folder, FILE);
  const damage = damageOf(file);
  if (damage !== undefined) throw new AppError("bad_file", damage);
  const bytes = readFileSync(file);
  return WebAssembly.validate(bytes) ? new WebAssembly.Module(bytes) : undefined;
}
