/** Reads of files by the system's asynchronous I/O. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, openSync, closeSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ptr } from "bun:ffi";
import { openFileReads } from "../../../src/engine/backends/host/file-reads.ts";

const UNIT = 4096;
const UNITS = 200;

let folder = "";
beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), "hearth-reads-"))));
afterAll(() => rmSync(folder, { recursive: true }));

if (process.platform === "linux") {
  test("more reads than the system queues at once all end with their bytes, and failed reads report the reason", () => {
    const bytes = Uint8Array.from({ length: UNIT * UNITS }, (_, i) => (i * 31 + Math.floor(i / UNIT)) % 251);
    const path = join(folder, "file");
    writeFileSync(path, bytes);
    const fd = openSync(path, "r");
    const reads = openFileReads()!;
    const into = new Uint8Array(UNIT * UNITS);
    const read = { fd, bytes: UNIT, least: UNIT };
    let left = UNITS;
    for (let i = 0; i < UNITS; i++) {
      const [offset, address] = [UNIT * (UNITS - 1 - i), ptr(into) + UNIT * (UNITS - 1 - i)];
      reads.begin({ ...read, offset, address }, (error) => {
        expect(error).toBeUndefined();
        left--;
      });
    }
    while (left > 0) reads.wait();
    expect(Bun.hash(into)).toBe(Bun.hash(bytes));
    const errors: (string | undefined)[] = [];
    const bad = { ...read, address: ptr(into) };
    reads.begin({ ...bad, offset: UNIT * UNITS }, (error) => errors.push(error));
    reads.begin({ ...bad, offset: 0, fd: 9999 }, (error) => errors.push(error));
    reads.begin({ ...bad, offset: 0 }, (error) => errors.push(error));
    for (let tries = 0; errors.length < 3 && tries < 9; tries++) reads.wait();
    expect(errors.toSorted()).toEqual([
      "bytes 819200 to 823296: the file ended after 0 bytes",
      "the system refused the read",
      undefined,
    ]);
    reads.close();
    closeSync(fd);
  });
}
