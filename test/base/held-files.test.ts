/** Files that another program holds; mapped ones are in `test/engine/formats/files/map.test.ts`. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { patiently, removeHeld, replaceFile } from "../../src/base/held-files.ts";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "hearth-held-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const failing = (code: string, times: number) => {
  let calls = 0;
  return {
    calls: () => calls,
    work: () => (++calls <= times ? Promise.reject(Object.assign(new Error(code), { code })) : Promise.resolve("done")),
  };
};

test("work on a file that is held for a moment is repeated until it succeeds on Windows", async () => {
  const { work, calls } = failing("EBUSY", 2);
  expect(await patiently(work, { platform: "win32" })).toBe("done");
  expect(calls()).toBe(3);
});

test("work on a file that stays held fails on Windows with the system's error", async () => {
  const { work, calls } = failing("EPERM", Infinity);
  await expect(patiently(work, { platform: "win32" })).rejects.toMatchObject({ code: "EPERM" });
  expect(calls()).toBe(7);
});

test("other errors and other systems are not retried", async () => {
  const full = failing("ENOSPC", 1);
  await expect(patiently(full.work, { platform: "win32" })).rejects.toMatchObject({ code: "ENOSPC" });
  const held = failing("EPERM", 1);
  await expect(patiently(held.work, { platform: "linux" })).rejects.toMatchObject({ code: "EPERM" });
  expect([full.calls(), held.calls()]).toEqual([1, 1]);
});

test("replaceFile moves a file onto another, or to a path without a file", async () => {
  for (const text of ["one", "two"]) {
    writeFileSync(join(folder, "new"), text);
    await replaceFile({ from: join(folder, "new"), to: join(folder, "file") });
    expect(readFileSync(join(folder, "file"), "utf8")).toBe(text);
  }
  expect(readdirSync(folder)).toEqual(["file"]);
});

test("removeHeld accepts a file that is already gone", async () => {
  writeFileSync(join(folder, "file"), "");
  await removeHeld(join(folder, "file"));
  await removeHeld(join(folder, "file"));
  expect(readdirSync(folder)).toEqual([]);
});
