/**
 * ONNX Runtime's C API as JavaScript functions: one row per function that we call, bound once. Failures become
 * `AppError`s with the library's own message. Indexes: order of `struct OrtApi` in onnxruntime_c_api.h, which only
 * grows at its end.
 */
import { CString, FFIType, linkSymbols, ptr, read, type Pointer } from "bun:ffi";
import { AppError } from "../../../base/index.ts";
import type { Library } from "./library.ts";

type Arg = "ptr" | "i32" | "u64";
/** Values for a `ptr`: memory (kept alive by the caller while native code may use it), or an address. */
type Memory = NodeJS.TypedArray | Pointer | null;

/** Functions that return a status: index in the table, then arguments. */
const FUNCTIONS = {
  CreateEnv: [3, "i32", "ptr", "ptr"],
  CreateSession: [7, "ptr", "ptr", "ptr", "ptr"],
  CreateSessionFromArray: [8, "ptr", "ptr", "u64", "ptr", "ptr"],
  Run: [9, "ptr", "ptr", "ptr", "ptr", "u64", "ptr", "u64", "ptr"],
  CreateSessionOptions: [10, "ptr"],
  SetOptimizedModelFilePath: [11, "ptr", "ptr"],
  EnableProfiling: [14, "ptr", "ptr"],
  DisableMemPattern: [17, "ptr"],
  DisableCpuMemArena: [19, "ptr"],
  SetSessionGraphOptimizationLevel: [23, "ptr", "i32"],
  SetIntraOpNumThreads: [24, "ptr", "i32"],
  SetInterOpNumThreads: [25, "ptr", "i32"],
  CreateRunOptions: [39, "ptr"],
  CreateTensorWithDataAsOrtValue: [49, "ptr", "ptr", "u64", "ptr", "u64", "i32", "ptr"],
  CreateCpuMemoryInfo: [69, "i32", "i32", "ptr"],
  AddSessionConfigEntry: [130, "ptr", "ptr", "ptr"],
  AddRunConfigEntry: [165, "ptr", "ptr", "ptr"],
} as const satisfies Record<string, readonly [number, ...Arg[]]>;

/** Functions that return nothing and take one pointer. */
const RELEASES = {
  ReleaseEnv: 92,
  ReleaseMemoryInfo: 94,
  ReleaseSession: 95,
  ReleaseValue: 96,
  ReleaseRunOptions: 97,
  ReleaseSessionOptions: 100,
} as const;

const GET_ERROR_MESSAGE = 2;
const RELEASE_STATUS = 93;

type Values<A extends readonly Arg[]> = {
  [I in keyof A]: A[I] extends "ptr" ? Memory : A[I] extends "u64" ? bigint : number;
};
type ArgsOf<R> = R extends readonly [number, ...infer A extends readonly Arg[]] ? Values<A> : never;

/** Every function throws `runner` with the library's message when it fails. */
export type Api = { readonly [K in keyof typeof FUNCTIONS]: (...args: ArgsOf<(typeof FUNCTIONS)[K]>) => void } & {
  readonly [K in keyof typeof RELEASES]: (handle: Pointer) => void;
};

/** Binds the table's functions. */
export function bindApi({ table }: Library): Api {
  const at = (index: number): Pointer => read.ptr(table, index * 8) as Pointer;
  const error = linkSymbols({
    message: { ptr: at(GET_ERROR_MESSAGE), args: [FFIType.ptr], returns: FFIType.ptr },
    release: { ptr: at(RELEASE_STATUS), args: [FFIType.ptr], returns: FFIType.void },
  }).symbols;
  const api: Record<string, unknown> = {};
  for (const [name, [index, ...args]] of Object.entries(FUNCTIONS)) {
    const native = linkSymbols({ f: { ptr: at(index), args: args.map((arg) => FFIType[arg]), returns: FFIType.ptr } })
      .symbols.f;
    api[name] = (...values: never[]): void => {
      const status = native(...values) as Pointer | null;
      if (!status) return;
      const message = new CString(error.message(status)!).toString(); // a status always has a message
      error.release(status);
      throw new AppError("runner", `ONNX Runtime: ${name}: ${message}`);
    };
  }
  for (const [name, index] of Object.entries(RELEASES)) {
    api[name] = linkSymbols({ f: { ptr: at(index), args: [FFIType.ptr], returns: FFIType.void } }).symbols.f;
  }
  return api as Api; // one entry per row of the two tables
}

/** Calls a function that writes a handle to its last argument, and returns the handle. */
export function handleOf(create: (out: BigUint64Array) => void): Pointer {
  const out = new BigUint64Array(1);
  create(out);
  return Number(out[0]) as Pointer; // user-space addresses fit in 2^53
}

/** A C string; keep the buffer while native code may read it. */
export function cString(text: string): Uint8Array {
  return Buffer.from(`${text}\0`, "utf8");
}

/** A path as the library expects it: UTF-16 on Windows (ORTCHAR_T). */
export function pathString(path: string): Uint8Array {
  return process.platform === "win32" ? Buffer.from(`${path}\0`, "utf16le") : cString(path);
}

/** Addresses of buffers, as a C array. The caller must keep references to the buffers. */
export function pointerArray(handles: readonly (Pointer | Uint8Array)[]): BigUint64Array {
  return BigUint64Array.from(handles, (each) => BigInt(typeof each === "number" ? each : ptr(each as Uint8Array)));
}
