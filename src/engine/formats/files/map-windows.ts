/** Maps a file read-only by kernel32, as `map.ts` does by libc. */
import { dlopen, ptr } from "bun:ffi";

const GENERIC_READ = 0x80000000;
const SHARE_ALL = 7; // to read, write and delete, as far as Windows allows that
const OPEN_EXISTING = 3;
const PAGE_READONLY = 2;
const FILE_MAP_READ = 4;

const openKernel = () =>
  dlopen("kernel32.dll", {
    CreateFileW: { args: ["ptr", "u32", "u32", "ptr", "u32", "u32", "u64"], returns: "i64" },
    CreateFileMappingW: { args: ["i64", "ptr", "u32", "u32", "u32", "ptr"], returns: "i64" },
    MapViewOfFile: { args: ["i64", "u32", "u32", "u32", "usize"], returns: "u64" },
    UnmapViewOfFile: { args: ["u64"], returns: "i32" },
    CloseHandle: { args: ["i64"], returns: "i32" },
  });

/**
 * Undefined if Windows refuses, or if the file has become shorter than `byteLength`.
 * @param path begins with `\\?\`: without it Windows allows 260 characters at most
 */
export function mapByKernel(path: string, byteLength: number): { address: number; unmap(): void } | undefined {
  const { symbols: kernel, close } = openKernel();
  const address = mapped(kernel, path, byteLength);
  if (address === 0n) {
    close();
    return undefined;
  }
  return {
    address: Number(address),
    unmap() {
      kernel.UnmapViewOfFile(address);
      close();
    },
  };
}

/** The address, or 0. The view holds the mapping, and the mapping the file: both handles are closed at once. */
function mapped(kernel: ReturnType<typeof openKernel>["symbols"], path: string, byteLength: number): bigint {
  const file = kernel.CreateFileW(ptr(wide(path)), GENERIC_READ, SHARE_ALL, null, OPEN_EXISTING, 0, 0n);
  if (file === -1n) return 0n;
  const [high, low] = [Math.floor(byteLength / 2 ** 32), byteLength % 2 ** 32];
  const mapping = kernel.CreateFileMappingW(file, null, PAGE_READONLY, high, low, null);
  kernel.CloseHandle(file);
  if (mapping === 0n) return 0n;
  const view = kernel.MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, byteLength);
  kernel.CloseHandle(mapping);
  return view;
}

/** Windows' own text. */
const wide = (path: string): Buffer => Buffer.from(`${path}\0`, "utf16le");
