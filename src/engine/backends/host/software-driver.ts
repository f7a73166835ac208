/**
 * A Vulkan driver that computes on the CPU, for machines without a driver: SwiftShader, from the npm package of a
 * headless browser, if that is installed. Used when the GPU backend is requested by name, so that its results can be
 * checked anywhere; it is far too slow for serving.
 */
import { lstatSync } from "node:fs";
import { mkdtemp, readFile, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { brotliDecompressSync } from "node:zlib";
import { AppError } from "../../../base/index.ts";
import { checkOwnFolder, openLibc } from "../../../base/system.ts";

/** The packed files of the browser's package, and the folder, per user and version, to which they are unpacked. */
export async function browserPackage(what: string): Promise<{ packed: string; folder: string }> {
  const packed = join(dirname(Bun.resolveSync("@sparticuz/chromium/package.json", import.meta.dir)), "bin");
  const { version } = await Bun.file(join(packed, "../package.json")).json();
  return { packed, folder: join(tmpdir(), `hearth-${what}-${version}-${process.getuid?.() ?? 0}`) };
}

/** The folder with the driver, unpacked on first use. Throws if the package is not installed. */
export async function unpackSoftwareDriver(): Promise<string> {
  const { packed, folder } = await browserPackage("swiftshader");
  await fillOnce(folder, (partial) => extract(join(packed, "swiftshader.tar.br"), partial));
  return folder;
}

/** The driver's description, for `VK_DRIVER_FILES`. */
export const driverFile = (folder: string): string => join(folder, "vk_swiftshader_icd.json");

/** Makes Vulkan find this driver in this process; false if this machine has no driver of this kind. */
export async function loadSoftwareDriver(): Promise<boolean> {
  if (process.platform !== "linux" || process.arch !== "x64") return false;
  const folder = await unpackSoftwareDriver().catch((error: unknown) => {
    if (error instanceof AppError) throw error;
    return undefined; // the package is for development only
  });
  if (folder === undefined) return false;
  const { dlopen, FFIType } = await import("bun:ffi");
  const libc = openLibc({ setenv: { args: [FFIType.cstring, FFIType.cstring, FFIType.i32], returns: FFIType.i32 } });
  if (!libc) return false;
  const text = (value: string): Buffer => Buffer.from(`${value}\0`);
  libc.symbols.setenv(text("VK_DRIVER_FILES"), text(driverFile(folder)), 1); // native code reads the real environment
  // stays loaded: Dawn's own attempt finds it by name
  dlopen(join(folder, "libvulkan.so.1"), {
    vkGetInstanceProcAddr: { args: [FFIType.ptr, FFIType.ptr], returns: FFIType.ptr },
  });
  return true;
}

export async function extract(archive: string, folder: string): Promise<void> {
  await new Bun.Archive(brotliDecompressSync(await readFile(archive))).extract(folder);
}

/**
 * Fills a folder, which appears complete or not at all: several processes may fill it at once. Throws `unsupported` for
 * a folder that another user could have filled, because code is loaded from it.
 */
export async function fillOnce(folder: string, fill: (partial: string) => Promise<void>): Promise<void> {
  if (isThere(folder)) return;
  const partial = await mkdtemp(`${folder}-`);
  await fill(partial);
  await rename(partial, folder).catch(async (error: unknown) => {
    await rm(partial, { recursive: true });
    if (!isThere(folder)) throw error;
  });
}

/** Returns whether it exists. */
function isThere(folder: string): boolean {
  if (!lstatSync(folder, { throwIfNoEntry: false })) return false;
  checkOwnFolder(folder);
  return true;
}
