/** The system's sleep and wake functions for kernel threads, as `pass.h` calls them. */
import { dlopen } from "bun:ffi";
import type { SleepFunctions } from "../simd/passes.ts";

interface System {
  readonly library: string;
  readonly waitOn: string;
  readonly wakeAll: string;
}

/** On Linux the kernels make system calls themselves. */
const SYSTEMS: Readonly<Record<string, System>> = {
  win32: { library: "kernelbase.dll", waitOn: "WaitOnAddress", wakeAll: "WakeByAddressAll" },
  darwin: {
    library: "libSystem.B.dylib",
    waitOn: "os_sync_wait_on_address", // since macOS 14.4
    wakeAll: "os_sync_wake_by_address_all",
  },
};

/** Undefined if the kernels need none, or if this system has none: then threads do not sleep within a pass. */
export function sleepFunctions(platform: string = process.platform): SleepFunctions | undefined {
  const system = SYSTEMS[platform];
  if (!system) return undefined;
  try {
    // Only their addresses are used. The library stays loaded.
    const { symbols } = dlopen(system.library, {
      [system.waitOn]: { args: [], returns: "void" },
      [system.wakeAll]: { args: [], returns: "void" },
    });
    return { waitOn: addressOf(symbols[system.waitOn]), wakeAll: addressOf(symbols[system.wakeAll]) };
  } catch {
    return undefined;
  }
}

/** Bun stores the address of a native function on it. */
const addressOf = (symbol: unknown): number => Number((symbol as { ptr: number | bigint }).ptr);
