/**
 * A GPU for machines without one: SwiftShader, a Vulkan driver that computes on the CPU, out of the npm package of a
 * headless browser. Processes started with `swiftShaderEnv()` find it; nothing is installed.
 */
import { copyFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { brotliDecompressSync } from "node:zlib";
import {
  browserPackage,
  driverFile,
  extract,
  fillOnce,
  unpackSoftwareDriver,
} from "../../../../src/engine/backends/host/software-driver.ts";

/**
 * Kernels, in the format of `HEARTH_GPU_KERNELS`, with which SwiftShader answers with the embedded model in
 * about half of the time: its rows are too short for 64 threads. For tests around the kernels; plain ones answer in a
 * page that loses its GPU (test/page) and in `logits` (test/e2e/webgpu-anywhere.test.ts).
 */
export const QUICK_KERNELS = "threads=32,columns=8,loads16";

/**
 * Toggles of Dawn for tests that compile many kernels: SwiftShader, which checks bounds itself and drops writes beyond
 * them, compiles a fifth less without Dawn's clamps of indexes. Programs, other drivers and runs of all cases keep
 * them.
 */
export const TOGGLES =
  process.env["HEARTH_TEST_CASES"] || process.env["HEARTH_TEST_VULKAN_DRIVER"] ? undefined : "disable_robustness";

/**
 * The command that runs a program with a GPU: this process's, or that of HEARTH_TEST_GPU_RUNTIME, for a driver that
 * needs other system libraries.
 */
export const gpuRuntime = (): string => process.env["HEARTH_TEST_GPU_RUNTIME"] ?? process.execPath;

/**
 * Environment in which a process finds the driver, extracted on first use and kept between runs.
 * HEARTH_TEST_VULKAN_DRIVER can name the file of another installed software driver.
 */
export async function swiftShaderEnv(): Promise<Record<string, string>> {
  const other = process.env["HEARTH_TEST_VULKAN_DRIVER"];
  if (other) return { VK_DRIVER_FILES: other, MALLOC_MMAP_THRESHOLD_: "1048576" };
  const folder = await unpackSoftwareDriver();
  return {
    LD_LIBRARY_PATH: folder,
    VK_DRIVER_FILES: driverFile(folder),
    MALLOC_MMAP_THRESHOLD_: "1048576", // set for runners: freed arenas return to the system
  };
}

/** Environment in which a process finds two adapters: the driver, and a copy that gives another name. */
export async function twoSwiftShadersEnv(): Promise<Record<string, string>> {
  const first = await unpackSoftwareDriver();
  const second = `${first}-second`;
  await fillOnce(second, async (partial) => {
    const library = "libvk_swiftshader.so";
    const bytes = Buffer.from(await readFile(join(first, library)));
    bytes.write("SwiftShader Second", bytes.indexOf("SwiftShader Device"));
    await writeFile(join(partial, library), bytes, { mode: 0o755 });
    await copyFile(driverFile(first), driverFile(partial));
  });
  const drivers = [first, second].map(driverFile).join(":");
  return { LD_LIBRARY_PATH: first, VK_DRIVER_FILES: drivers, MALLOC_MMAP_THRESHOLD_: "1048576" };
}

/** Path of the headless browser itself, with its driver beside it; extracted like the driver. */
export async function browserPath(): Promise<string> {
  const { packed, folder } = await browserPackage("browser");
  await fillOnce(folder, async (partial) => {
    await extract(join(packed, "swiftshader.tar.br"), partial);
    const program = brotliDecompressSync(await readFile(join(packed, "chromium.br")));
    await writeFile(join(partial, "browser"), program, { mode: 0o755 });
  });
  return join(folder, "browser");
}
