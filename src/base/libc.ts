/** Functions of this system's C library. */
import { dlopen, type FFIFunction, type Library } from "bun:ffi";

/** File names of the C library, most common first: glibc and musl on Linux. */
export function libcNames(platform: NodeJS.Platform = process.platform, arch: string = process.arch): string[] {
  if (platform === "darwin") return ["libSystem.B.dylib"];
  if (platform === "win32") return ["ucrtbase.dll"];
  return ["libc.so.6", `libc.musl-${arch === "arm64" ? "aarch64" : "x86_64"}.so.1`];
}

/** Returns undefined if native functions cannot be called here, or if the C library lacks one of them. */
export function openLibc<F extends Record<string, FFIFunction>>(functions: F): Library<F> | undefined {
  for (const name of libcNames()) {
    try {
      return dlopen(name, functions);
    } catch {
      // not this C library
    }
  }
  return undefined;
}
