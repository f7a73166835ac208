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

test("Windows: work on a file that is held for a moment is done after it", async () => {
  const { work, calls } = failing("EBUSY", 2);
  expect(await patiently(work, { platform: "win32" })).toBe("done");
  expect(calls()).toBe(3);
});

test("Windows: a file that stays held, or that may not be changed, fails with the system's own error", async () => {
  const { work, calls } = failing("EPERM", Infinity);
  await expect(patiently(work, { platform: "win32" })).rejects.toMatchObject({ code: "EPERM" });
  expect(calls()).toBe(7);
});

test("other errors, and other systems, do not wait", async () => {
  const full = failing("ENOSPC", 1);
  await expect(patiently(full.work, { platform: "win32" })).rejects.toMatchObject({ code: "ENOSPC" });
  const held = failing("EPERM", 1);
  await expect(patiently(held.work, { platform: "linux" })).rejects.toMatchObject({ code: "EPERM" });
  expect([full.calls(), held.calls()]).toEqual([1, 1]);
});

test("a file takes the place of another, and of one that is not there", async () => {
  for (const text of ["one", "two"]) {
    writeFileSync(join(folder, "new"), text);
    await replaceFile({ from: join(folder, "new"), to: join(folder, "file") });
    expect(readFileSync(join(folder, "file"), "utf8")).toBe(text);
  }
  expect(readdirSync(folder)).toEqual(["file"]);
});

test("a file that is gone already can be removed", async () => {
  writeFileSync(join(folder, "file"), "");
  await removeHeld(join(folder, "file"));
  await removeHeld(join(folder, "file"));
  expect(readdirSync(folder)).toEqual([]);
});
