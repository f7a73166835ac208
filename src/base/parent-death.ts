/** Ends a child process with the one that started it, or instead of it. */
import { dlopen, FFIType } from "bun:ffi";
import { readFileSync, writeFileSync } from "node:fs";

/** Of 1,000: as if the process took half of the machine's memory more. */
const OOM_SCORE_ADJ = 500;
const OOM_SCORE_FILE = "/proc/self/oom_score_adj";

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

/** Has Linux choose this process, where memory runs out, before others that take as much. Elsewhere does nothing. */
export function dieBeforeParent(): void {
  if (process.platform !== "linux") return;
  try {
    const before = Number(readFileSync(OOM_SCORE_FILE, "utf8"));
    if (before < OOM_SCORE_ADJ) writeFileSync(OOM_SCORE_FILE, String(OOM_SCORE_ADJ)); // more needs no privilege
  } catch {
    // Some containers keep it as it is.
  }
}
