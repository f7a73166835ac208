/** Calls for macOS: on other systems they have no effect, and a C library accepts their signatures. */
import { afterAll, expect, test } from "bun:test";
import { closeSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { flushDrive } from "../../src/base/system.ts";
import { preferFastCores } from "../../src/engine/backends/host/fast-cores.ts";

const folder = mkdtempSync(join(tmpdir(), "hearth-macos-"));
afterAll(() => rmSync(folder, { recursive: true }));

test("flushDrive flushes on macOS only", () => {
  const fd = openSync(join(folder, "file"), "w");
  const isMac = process.platform === "darwin";
  expect([flushDrive(fd), flushDrive(fd, "linux"), flushDrive(fd, "win32")]).toEqual([isMac, false, false]);
  closeSync(fd);
  // Linux's fcntl refuses the command, and every system a closed file
  if (process.platform !== "win32") expect(flushDrive(fd, "darwin")).toBe(false);
});

test("preferFastCores has an effect on macOS only", () => {
  const isMac = process.platform === "darwin";
  expect(preferFastCores()).toBe(isMac);
  if (process.platform === "linux") expect(preferFastCores("darwin")).toBe(false); // its C library lacks the function
});
