/** Files on file systems that lack an operation: procfs syncs no folder and keeps no modes. */
import { expect, test } from "bun:test";
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makePrivate, syncFolder } from "../../src/base/system.ts";

const isLinux = process.platform === "linux";

test.skipIf(!isLinux)(
  "a folder whose file system cannot sync it counts as synced; a missing one does not",
  async () => {
    await syncFolder("/proc/self");
    await expect(syncFolder("/proc/self/no-such-folder")).rejects.toMatchObject({ code: "ENOENT" });
  },
);

test.skipIf(!isLinux)("a file keeps its mode where the file system lets nobody change it", () => {
  const mode = (): number => statSync("/proc/self/comm").mode;
  const before = mode();
  expect(() => chmodSync("/proc/self/comm", 0o600)).toThrow("EPERM");
  makePrivate("/proc/self/comm");
  expect(mode()).toBe(before);
});

test.skipIf(process.platform === "win32")(
  "only its owner may read a private file, and a missing one is an error",
  () => {
    const folder = mkdtempSync(join(tmpdir(), "hearth-durable-"));
    try {
      const path = join(folder, "key");
      writeFileSync(path, "", { mode: 0o644 });
      makePrivate(path);
      expect(statSync(path).mode & 0o777).toBe(0o600);
      expect(() => makePrivate(join(folder, "none"))).toThrow("ENOENT");
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);
