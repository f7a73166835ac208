/** Flushes a drive's own cache: on macOS `fsync` hands data to the drive only, which a power failure may still take. */
import { openLibc } from "./libc.ts";

const F_FULLFSYNC = 51; // sys/fcntl.h of macOS

/**
 * Makes the drive write an open file that was synced before. Returns whether it did: only macOS needs this, and some
 * file systems there refuse it. Blocks while the drive writes, some milliseconds.
 */
export function flushDrive(fd: number, platform: NodeJS.Platform = process.platform): boolean {
  if (platform !== "darwin") return false;
  // variadic in C, but this command has no argument
  const libc = openLibc({ fcntl: { args: ["i32", "i32"], returns: "i32" } });
  if (!libc) return false;
  const result = libc.symbols.fcntl(fd, F_FULLFSYNC);
  libc.close();
  return result !== -1;
}
