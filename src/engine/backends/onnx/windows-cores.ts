/** The processor's cores on Windows, as opposed to its logical processors, of which a core may have two. */
import { dlopen, ptr } from "bun:ffi";

const RELATION_PROCESSOR_CORE = 0;
/** Offsets and sizes of SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX, in bytes. */
const [SIZE_AT, CLASS_AT, ENTRY_BYTES_MIN] = [4, 9, 32];

/** Undefined if Windows does not report them. */
export function windowsCores(): number | undefined {
  const { symbols, close } = dlopen("kernel32.dll", {
    GetLogicalProcessorInformationEx: { args: ["i32", "ptr", "ptr"], returns: "i32" },
  });
  try {
    const length = new Uint32Array(1);
    symbols.GetLogicalProcessorInformationEx(RELATION_PROCESSOR_CORE, null, ptr(length)); // returns the list's length
    const list = new Uint8Array(length[0]!);
    if (list.length === 0) return undefined;
    const isThere = symbols.GetLogicalProcessorInformationEx(RELATION_PROCESSOR_CORE, ptr(list), ptr(length)) !== 0;
    return isThere ? countCores(list) : undefined;
  } finally {
    close();
  }
}

/**
 * Cores of the fastest kind, or half of all if those are fewer: the slow cores of a laptop's processor delay the fast
 * ones, unless there are hardly any fast ones. Undefined for an invalid list.
 */
export function countCores(list: Uint8Array): number | undefined {
  const view = new DataView(list.buffer, list.byteOffset, list.byteLength);
  const classes: number[] = [];
  for (let at = 0; at < list.length;) {
    if (at + ENTRY_BYTES_MIN > list.length) return undefined;
    const size = view.getUint32(at + SIZE_AT, true);
    if (size < ENTRY_BYTES_MIN || at + size > list.length) return undefined;
    classes.push(view.getUint8(at + CLASS_AT));
    at += size;
  }
  const best = classes.reduce((most, each) => Math.max(most, each), 0);
  const fastest = classes.filter((each) => each === best).length;
  return classes.length === 0 ? undefined : Math.max(fastest, Math.ceil(classes.length / 2));
}
