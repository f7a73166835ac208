/** The system's functions by which the threads of kernels sleep and wake one another, as `pass.h` calls them. */
import { dlopen } from "bun:ffi";
import type { SleepFunctions } from "../simd/passes.ts";

interface System {
  readonly library: string;
  readonly waitOn: string;
  readonly wakeAll: string;
}

/** On Linux the kernels call the system by themselves. */
const SYSTEMS: Readonly<Record<string, System>> = {
  win32: { library: "kernelbase.dll", waitOn: "WaitOnAddress", wakeAll: "WakeByAddressAll" },
  darwin: {
    library: "libSystem.B.dylib",
    waitOn: "os_sync_wait_on_address", // macOS 14.4 has it
    wakeAll: "os_sync_wake_by_address_all",
  },
};

/** Undefined where the kernels need none, or where this system has none: then their threads do not sleep in a pass. */
export function sleepFunctions(platform: string = process.platform): SleepFunctions | undefined {
  const system = SYSTEMS[platform];
  if (!system) return undefined;
  try {
    // Only their addresses are taken. The library stays loaded.
    const { symbols } = dlopen(system.library, {
      [system.waitOn]: { args: [], returns: "void" },
      [system.wakeAll]: { args: [], returns: "void" },
    });
    return { waitOn: addressOf(symbols[system.waitOn]), wakeAll: addressOf(symbols[system.wakeAll]) };
  } catch {
    return undefined;
  }
}

/** Bun keeps the address of a native function beside it. */
const addressOf = (symbol: unknown): number => Number((symbol as { ptr: number | bigint }).ptr);
