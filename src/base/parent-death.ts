/** Ends a child process together with its parent, or in the parent's place. */
import { FFIType } from "bun:ffi";
import { readFileSync, writeFileSync } from "node:fs";
import { openLibc } from "./libc.ts";

/** Per mille: as if the process took half of the machine's memory in addition. */
const OOM_SCORE_ADJ = 500;
const OOM_SCORE_FILE = "/proc/self/oom_score_adj";

/**
 * Makes Linux kill this process when its parent dies, even within a native call. Does nothing on other systems, where
 * the closed channel must end the process.
 */
export function dieWithParent(): void {
  if (process.platform !== "linux") return;
  const parent = process.ppid;
  const libc = openLibc({
    prctl: { args: [FFIType.i32, FFIType.u64, FFIType.u64, FFIType.u64, FFIType.u64], returns: FFIType.i32 },
  });
  libc?.symbols.prctl(1, 9, 0, 0, 0); // PR_SET_PDEATHSIG, SIGKILL: linux/prctl.h
  if (process.ppid !== parent) process.exit(0);
}

/** Makes Linux's OOM killer prefer this process over others of its size. Does nothing on other systems. */
export function dieBeforeParent(): void {
  if (process.platform !== "linux") return;
  try {
    const before = Number(readFileSync(OOM_SCORE_FILE, "utf8"));
    if (before < OOM_SCORE_ADJ) writeFileSync(OOM_SCORE_FILE, String(OOM_SCORE_ADJ)); // raising it needs no privilege
  } catch {
    // some containers do not allow it
  }
}
