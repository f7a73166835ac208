/** Available memory, read from file systems like Linux's. */
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { availableMemory, totalMemory } from "../../src/base/available-memory.ts";

const folders: string[] = [];
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true })));

const MIB = 2 ** 20;
const MEMINFO = "MemTotal:  4194304 kB\nMemFree:  1000 kB\nMemAvailable:  2097152 kB\nSwapFree:  1024 kB\n";

function machine(files: Record<string, string>): string {
  const root = mkdtempSync(join(tmpdir(), "hearth-memory-"));
  folders.push(root);
  for (const [path, text] of Object.entries({ "proc/meminfo": MEMINFO, ...files })) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

test("without a limit, available memory is the machine's, with swap if asked for", () => {
  expect(availableMemory({ root: machine({}) })).toBe(2048 * MIB);
  expect(availableMemory({ root: machine({}), swaps: true })).toBe(2049 * MIB);
  const groups = { "proc/self/cgroup": "0::/user\n", "sys/fs/cgroup/user/memory.max": "max\n" };
  expect(availableMemory({ root: machine({ ...groups, "sys/fs/cgroup/user/memory.current": "5\n" }) })).toBe(
    2048 * MIB,
  );
});

test("a memory limit of the process's group or of a parent group counts, and the file cache under it is free", () => {
  const own = {
    "proc/self/cgroup": "0::/pod/hearth\n",
    "sys/fs/cgroup/pod/hearth/memory.max": "max\n",
    "sys/fs/cgroup/pod/hearth/memory.current": `${90 * MIB}\n`,
    "sys/fs/cgroup/pod/memory.max": `${100 * MIB}\n`,
    "sys/fs/cgroup/pod/memory.current": `${90 * MIB}\n`,
    "sys/fs/cgroup/pod/memory.stat": `anon 7\ninactive_file ${20 * MIB}\nactive_file ${10 * MIB}\nfile 9\n`,
  };
  expect(availableMemory({ root: machine(own) })).toBe(40 * MIB);
  expect(availableMemory({ root: machine({ ...own, "sys/fs/cgroup/pod/memory.current": `${200 * MIB}\n` }) })).toBe(0);
  const atRoot = {
    "proc/self/cgroup": "0::/\n",
    "sys/fs/cgroup/memory.max": "300",
    "sys/fs/cgroup/memory.current": "1",
  };
  expect(availableMemory({ root: machine(atRoot) })).toBe(299);
});

test("limits of cgroup version 1 count", () => {
  const files = {
    "proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/pod\n0::/\n",
    "sys/fs/cgroup/memory/pod/memory.limit_in_bytes": `${64 * MIB}\n`,
    "sys/fs/cgroup/memory/pod/memory.usage_in_bytes": `${32 * MIB}\n`,
    "sys/fs/cgroup/memory/pod/memory.stat": `inactive_file 1\ntotal_inactive_file ${MIB}\ntotal_active_file ${MIB}\n`,
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    "sys/fs/cgroup/memory/memory.usage_in_bytes": "77\n",
  };
  expect(availableMemory({ root: machine(files) })).toBe(34 * MIB);
});

test("available memory is read on this machine", () => {
  expect(availableMemory()).toBeGreaterThan(MIB);
});

test("total memory is the machine's, or the smallest limit of the process's groups", () => {
  expect(totalMemory({ root: machine({}) })).toBe(4096 * MIB);
  const groups = {
    "proc/self/cgroup": "0::/pod/hearth\n",
    "sys/fs/cgroup/pod/hearth/memory.max": "max\n",
    "sys/fs/cgroup/pod/memory.max": `${100 * MIB}\n`,
  };
  expect(totalMemory({ root: machine(groups) })).toBe(100 * MIB);
});
