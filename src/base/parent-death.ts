/** Ends a child process with the one that started it. */
import { dlopen, FFIType } from "bun:ffi";

/**
 * Asks Linux to kill this process when the one that started it dies, even in the middle of a native call. Elsewhere
 * does nothing: the closed channel must end the process.
 */
export function dieWithParent(): void {
  if (process.platform !== "linux") return;
  const parent = process.ppid;
  const libc = dlopen("libc.so.6", {
    prctl: { args: [FFIType.i32, FFIType.u64, FFIType.u64, FFIType.u64, FFIType.u64], returns: FFIType.i32 },
  });
  libc.symbols.prctl(1, 9, 0, 0, 0); // PR_SET_PDEATHSIG, SIGKILL: linux/prctl.h
  if (process.ppid !== parent) process.exit(0);
}
