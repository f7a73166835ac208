/** Fast cores for threads that compute: macOS and Windows 11 run threads of less importance on their slow ones. */
import { dlopen, ptr } from "bun:ffi";
import { openLibc } from "../../../base/system.ts";

const USER_INITIATED = 0x19; // QOS_CLASS_USER_INITIATED, sys/qos.h
const THREAD_POWER_THROTTLING = 3; // THREAD_INFORMATION_CLASS, processthreadsapi.h
/** THREAD_POWER_THROTTLING_STATE: version 1, the thread controls its speed, and it is not throttled. */
const FULL_SPEED = [1, 1, 0];

/** Asks the system to run the calling thread on fast cores. Returns whether it agreed; Linux needs nothing. */
export function preferFastCores(platform: NodeJS.Platform = process.platform): boolean {
  if (platform === "win32") return refuseThrottling();
  if (platform !== "darwin") return false;
  const libc = openLibc({ pthread_set_qos_class_self_np: { args: ["u32", "i32"], returns: "i32" } });
  return libc?.symbols.pthread_set_qos_class_self_np(USER_INITIATED, 0) === 0;
}

function refuseThrottling(): boolean {
  try {
    const { symbols, close } = dlopen("kernel32.dll", {
      GetCurrentThread: { args: [], returns: "i64" },
      SetThreadInformation: { args: ["i64", "i32", "ptr", "u32"], returns: "i32" },
    });
    const state = new Uint32Array(FULL_SPEED);
    const thread = symbols.GetCurrentThread();
    const isSet = symbols.SetThreadInformation(thread, THREAD_POWER_THROTTLING, ptr(state), state.byteLength) !== 0;
    close();
    return isSet;
  } catch {
    return false;
  }
}
