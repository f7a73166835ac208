/**
 * Finds ONNX Runtime's shared library inside the `onnxruntime-node` package and opens it. Only this file of the package
 * is used, unless native functions cannot be called: its JavaScript binding is slow (see `fallback.ts`).
 */
import { CString, dlopen, FFIType, linkSymbols, read, type Pointer } from "bun:ffi";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { AppError, messageOf } from "../../../base/index.ts";
import { hasInside, openLibc, packageFolder } from "../../../base/system.ts";

/** Oldest runtime whose function table has every entry that `api.ts` names. */
const API_VERSION = 25;
/** File names that the package gives the library, best first. */
const FILE_NAMES: Readonly<Record<string, readonly string[]>> = {
  linux: ["libonnxruntime.so.1"],
  darwin: ["libonnxruntime.1.dylib", "libonnxruntime.1.30.0.dylib"],
  win32: ["onnxruntime.dll"],
};
const TELEMETRY_SWITCH = "ORT_DISABLE_TELEMETRY";

export interface Library {
  readonly path: string;
  /** As the library says, e.g. "1.30.0". */
  readonly version: string;
  /** Address of the `OrtApi` table: one function pointer after another. */
  readonly table: Pointer;
}

/** The reason why there is no library for this machine; undefined: there is one. Unpacks nothing. */
export function libraryLacks(): string | undefined {
  if (hasInside("node_modules/onnxruntime-node")) return undefined;
  const found = findLibrary();
  return "reason" in found ? found.reason : undefined;
}

/** The library's path, or the reason why this machine has no library. */
export function findLibrary(from: string = import.meta.dir): { path: string } | { reason: string } {
  const names = FILE_NAMES[process.platform];
  if (!names) return { reason: `no ONNX Runtime for ${process.platform}` };
  let root: string;
  try {
    root = packageFolder("onnxruntime-node", from);
  } catch (error) {
    return { reason: `package onnxruntime-node is not installed: ${messageOf(error)}` };
  }
  const folder = join(root, "bin", "napi-v6", process.platform, process.arch);
  const paths = names.map((name) => join(folder, name));
  const path = paths.find((each) => existsSync(each));
  return path ? { path } : { reason: `ONNX Runtime library not found: tried ${paths.join(", ")}` };
}

/** Opens the library. Throws `unsupported` if it is missing, too old, or would report usage to its vendor. */
export function openLibrary(): Library {
  const found = findLibrary();
  if ("reason" in found) throw new AppError("unsupported", found.reason);
  checkTelemetryOff();
  return openLibraryAt(found.path);
}

/** Opens a library file without the check of usage reports, which `openLibrary` makes. */
export function openLibraryAt(path: string): Library {
  let base: Pointer | null;
  try {
    const library = dlopen(path, { OrtGetApiBase: { args: [], returns: FFIType.ptr } });
    base = library.symbols.OrtGetApiBase() as Pointer | null; // never a bigint: user-space addresses fit in 2^53
  } catch (error) {
    throw new AppError("unsupported", `${path}: cannot be loaded: ${messageOf(error)}`, { cause: error });
  }
  if (!base) throw new AppError("unsupported", `${path}: OrtGetApiBase returned no table`);
  // struct OrtApiBase { GetApi(version); GetVersionString() }, onnxruntime_c_api.h
  const entry = linkSymbols({
    GetApi: { ptr: read.ptr(base, 0) as Pointer, args: [FFIType.u32], returns: FFIType.ptr },
    GetVersionString: { ptr: read.ptr(base, 8) as Pointer, args: [], returns: FFIType.ptr },
  });
  const versionText = entry.symbols.GetVersionString();
  const version = versionText ? new CString(versionText as Pointer).toString() : "unknown";
  checkVersion(version, path);
  const table = entry.symbols.GetApi(API_VERSION) as Pointer | null;
  if (!table) throw new AppError("unsupported", `${path}: ONNX Runtime ${version} has no API version ${API_VERSION}`);
  return { path, version, table };
}

/** Throws `unsupported` unless the version is 1.25 or newer, still 1.x. */
export function checkVersion(version: string, path: string): void {
  const match = /^(\d+)\.(\d+)\./.exec(version);
  if (match?.[1] === "1" && Number(match[2]) >= API_VERSION) return;
  throw new AppError("unsupported", `${path}: expected ONNX Runtime 1.${API_VERSION} or newer, found '${version}'`);
}

/**
 * The library starts its usage reports when it is loaded, and reads the switch from the process's own environment,
 * which JavaScript's `process.env` does not change.
 */
export function checkTelemetryOff(): void {
  if (nativeEnvironment(TELEMETRY_SWITCH) === "1") return;
  const how = `start the process with ${TELEMETRY_SWITCH}=1 in its environment`;
  throw new AppError("unsupported", `ONNX Runtime would report usage to its vendor: ${how}`);
}

/** Returns whether native functions can be called: some builds of Bun cannot, and policies may forbid it. */
export function canCallNative(): boolean {
  return openEnvironment() !== undefined;
}

const openEnvironment = () => openLibc({ getenv: { args: [FFIType.cstring], returns: FFIType.ptr } });

/** A variable of the environment that native code sees. */
function nativeEnvironment(name: string): string | undefined {
  const libc = openEnvironment();
  if (!libc) return startEnvironment().get(name);
  const value = libc.symbols.getenv(Buffer.from(`${name}\0`));
  return value ? new CString(value as Pointer).toString() : undefined;
}

/** The environment with which this process was started, as Linux keeps it; empty elsewhere. */
function startEnvironment(): ReadonlyMap<string, string> {
  if (process.platform !== "linux") return new Map();
  const entries = readFileSync("/proc/self/environ", "utf8").split("\0");
  return new Map(entries.map((entry) => [entry.slice(0, entry.indexOf("=")), entry.slice(entry.indexOf("=") + 1)]));
}
