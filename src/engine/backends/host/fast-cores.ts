/** The class of a thread that computes: macOS gives threads of lower classes its efficiency cores. */
import { openLibc } from "../../../base/system.ts";

const USER_INITIATED = 0x19; // QOS_CLASS_USER_INITIATED, sys/qos.h

/** Asks macOS to run the calling thread on performance cores. Returns whether it agreed; other systems need nothing. */
export function preferFastCores(platform: NodeJS.Platform = process.platform): boolean {
  if (platform !== "darwin") return false;
  const libc = openLibc({ pthread_set_qos_class_self_np: { args: ["u32", "i32"], returns: "i32" } });
  return libc?.symbols.pthread_set_qos_class_self_np(USER_INITIATED, 0) === 0;
}
