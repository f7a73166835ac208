/** Libraries for another system on the same processor: laid out in memory of this process and called there. */
import { CFunction, dlopen, toArrayBuffer, type Pointer } from "bun:ffi";
import { readFileSync } from "node:fs";
import { layOut } from "./image.ts";

/** Only Linux on x64 is asked to do so. */
export const canLoadForeign = process.platform === "linux" && process.arch === "x64";

const [READ_WRITE_EXECUTE, PRIVATE_ANONYMOUS] = [7, 0x22];

/** Returns its `hearth_run`. The memory is kept until the process ends. */
export function loadForeign(path: string): (header: number, index: number) => void {
  const { bytes, exports } = layOut(readFileSync(path));
  const libc = dlopen("libc.so.6", {
    mmap: { args: ["ptr", "usize", "i32", "i32", "i32", "i64"], returns: "ptr" },
  });
  const thunkAt = Math.ceil(bytes.length / 64) * 64;
  const length = thunkAt + 64;
  const base = libc.symbols.mmap(null, length, READ_WRITE_EXECUTE, PRIVATE_ANONYMOUS, -1, 0n)!;
  const memory = new Uint8Array(toArrayBuffer(base, 0, length));
  memory.set(bytes);
  const run = Number(base) + exports.get("hearth_run")!;
  if (path.endsWith(".dll")) memory.set(callingWindows(run), thunkAt);
  const entry = path.endsWith(".dll") ? Number(base) + thunkAt : run;
  const call = CFunction({ ptr: entry as Pointer, args: ["ptr", "i32"], returns: "void" });
  return (header, index) => void call(header as Pointer, index);
}

/** Code that takes two arguments as Linux passes them and calls a function of Windows. */
function callingWindows(target: number): Uint8Array {
  // rcx = rdi, rdx = rsi; 40 bytes of stack; rax = the address that follows
  const code = [0x48, 0x89, 0xf9, 0x48, 0x89, 0xf2, 0x48, 0x83, 0xec, 0x28, 0x48, 0xb8];
  const address = new Uint8Array(new BigUint64Array([BigInt(target)]).buffer);
  return Uint8Array.of(...code, ...address, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x28, 0xc3); // call rax; return
}
