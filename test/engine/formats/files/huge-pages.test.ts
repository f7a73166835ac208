/** Mapped files move into pages of 2 MB: the same bytes at the same addresses, before, meanwhile and after. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { closeSync, mkdtempSync, openSync, readFileSync, renameSync, rmSync, truncateSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ptr } from "bun:ffi";
import { moveToHugePages } from "../../../../src/engine/formats/files/huge-pages.ts";
import { mapFile } from "../../../../src/engine/formats/files/map.ts";

const MIB = 2 ** 20;
const settings = "/sys/kernel/mm/transparent_hugepage";
const read = (name: string): string =>
  process.platform === "linux" ? readFileSync(`${settings}/${name}`, "utf8") : "";
const offers = !read("enabled").includes("[never]") && Number(read("hpage_pmd_size")) === 2 * MIB;

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "hearth-pages-"));
  path = join(folder, "file");
});
afterEach(() => rmSync(folder, { recursive: true }));

const BYTES = 101 * MIB + 12_345;
/** Text that differs in every 64 bytes, so that no piece can stand for another. */
function fill(to: string, begin: number): Uint8Array {
  const values = Uint32Array.from({ length: Math.ceil(BYTES / 64) * 16 }, (_, i) => begin + i);
  const bytes = new Uint8Array(values.buffer, 0, BYTES);
  overwrite(to, bytes, "w");
  return bytes;
}

function overwrite(to: string, bytes: Uint8Array, flags: string): void {
  const file = openSync(to, flags);
  for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at, bytes.length - at, at);
  closeSync(file);
}

const same = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;

test.skipIf(!offers)("moving a file to huge pages moves nearly all of it, and its views keep their bytes", async () => {
  const bytes = fill(path, 1);
  const file = mapFile(path);
  const view = file.view(0, BYTES);
  const moved = Number(await file.moveToHugePages?.());
  expect(moved % (2 * MIB)).toBe(0);
  expect(moved).toBeGreaterThan(BYTES - 4 * MIB);
  expect(same(view, bytes)).toBe(true);
  overwrite(path, new Uint8Array(BYTES), "r+"); // shows where the file is still mapped: at both ends at most
  expect(same(view.subarray(2 * MIB, BYTES - 2 * MIB), bytes.subarray(2 * MIB, BYTES - 2 * MIB))).toBe(true);
  file.close();
  expect(view.byteLength).toBe(0);
});

test.skipIf(!offers)("a thread that reads during the move sees the file's bytes only", async () => {
  const bytes = fill(path, 1);
  const file = mapFile(path);
  const view = file.view(0, BYTES);
  const source = `
    import { toArrayBuffer } from "bun:ffi";
    const words = new Uint32Array(toArrayBuffer(${ptr(view)}, 0, ${BYTES - (BYTES % 4)}));
    let rounds = 0, wrong = 0, isAsked = false;
    self.onmessage = () => (isAsked = true);
    const look = () => {
      for (let i = 0; i < words.length; i += 16) if (words[i] !== 1 + i) wrong++;
      rounds++;
      if (isAsked && rounds > 2) postMessage({ wrong });
      else setTimeout(look);
    };
    postMessage("ready");
    look();`;
  const worker = new Worker(URL.createObjectURL(new Blob([source], { type: "application/typescript" })));
  const next = (): Promise<unknown> => new Promise((resolve) => (worker.onmessage = ({ data }) => resolve(data)));
  await next();
  const moved = await file.moveToHugePages?.();
  worker.postMessage("enough");
  expect(await next()).toEqual({ wrong: 0 });
  worker.terminate();
  expect(moved).toBeGreaterThan(0);
  expect(same(view, bytes)).toBe(true);
  file.close();
});

test.skipIf(!offers)("the move stops if memory is short or the file is replaced, truncated or closed", async () => {
  const bytes = fill(path, 1);
  const file = mapFile(path);
  const view = file.view(0, BYTES);
  const mapped = { path, ino: 0, address: ptr(view), byteLength: BYTES, isOpen: () => true };
  expect(await moveToHugePages(mapped)).toBe(0); // another file has the path
  const own = { ...mapped, ino: Bun.file(path).size && (await Bun.file(path).stat()).ino };
  expect(await moveToHugePages(own, () => BYTES)).toBe(0);
  const rooms = [3 * BYTES, 0];
  expect(await moveToHugePages(own, () => rooms.shift() ?? 0)).toBe(32 * MIB);
  let looks = 0;
  expect(await moveToHugePages({ ...own, isOpen: () => looks++ < 3 })).toBe(32 * MIB);
  expect(same(view, bytes)).toBe(true);
  truncateSync(path, 40 * MIB);
  expect(await moveToHugePages(own)).toBe(32 * MIB);
  expect(same(view.subarray(0, 36 * MIB), bytes.subarray(0, 36 * MIB))).toBe(true);
  renameSync(path, join(folder, "elsewhere"));
  expect(await moveToHugePages(own)).toBe(0);
  file.close();
});
