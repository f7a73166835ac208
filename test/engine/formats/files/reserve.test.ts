/** Reserved addresses, on Linux. */
import { expect, test } from "bun:test";
import { toArrayBuffer, type Pointer } from "bun:ffi";
import { openLibc } from "../../../../src/base/system.ts";
import { reservePages } from "../../../../src/engine/formats/files/reserve.ts";

const PAGE_BYTES = 2 ** 21;
const MAP_PRIVATE_ANONYMOUS_FIXED = 0x32;
const onLinux = process.platform === "linux" ? test : test.skip;

onLinux("releasing them leaves alone a part that was moved away, where a new thread's stack may lie by now", () => {
  const { mmap } = openLibc({
    mmap: { args: ["ptr", "usize", "i32", "i32", "i32", "i64"], returns: "ptr" },
  })!.symbols;
  const reserved = reservePages(4 * PAGE_BYTES)!;
  const from = reserved.address + PAGE_BYTES;
  expect(Number(mmap(from as Pointer, PAGE_BYTES, 3, MAP_PRIVATE_ANONYMOUS_FIXED, -1, 0))).toBe(from);
  const others = new Uint8Array(toArrayBuffer(from as Pointer, 0, PAGE_BYTES));
  others[5] = 7;
  reserved.release({ from, to: from + PAGE_BYTES });
  expect(others[5]).toBe(7); // reading unmapped memory would end the process
});
