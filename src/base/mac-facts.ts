/** Facts that macOS gives by name: sysctlbyname(3). */
import { ptr } from "bun:ffi";
import { openLibc } from "./libc.ts";

/** The longest text, such as the name of a kind of core. */
const TEXT_BYTES = 256;

/** Reads facts by their names; tests have facts of their own. Undefined: macOS has no such fact. */
export interface MacFacts {
  number(name: string): number | undefined;
  text(name: string): string | undefined;
}

/** This machine's facts; other systems have no facts by these names. */
export const MAC_FACTS: MacFacts = {
  number(name) {
    const value = new BigInt64Array(1);
    return read(name, value) === undefined ? undefined : Number(value[0]); // some have 4 bytes: the others stay 0
  },
  text(name) {
    const bytes = new Uint8Array(TEXT_BYTES);
    const length = read(name, bytes);
    return length === undefined ? undefined : Buffer.from(bytes.subarray(0, length)).toString().replace(/\0.*$/s, "");
  },
};

/** Fills `into`. Returns the number of bytes; undefined: there is no such fact, or it is longer. */
function read(name: string, into: BigInt64Array | Uint8Array): number | undefined {
  const libc = openLibc({ sysctlbyname: { args: ["cstring", "ptr", "ptr", "ptr", "usize"], returns: "i32" } });
  if (!libc) return undefined;
  const size = new BigUint64Array([BigInt(into.byteLength)]);
  const failed = libc.symbols.sysctlbyname(Buffer.from(`${name}\0`), ptr(into), ptr(size), null, 0);
  libc.close();
  return failed === 0 ? Number(size[0]) : undefined;
}
