/** How much memory a process could still take before Linux ends one: of the machine, and of its control groups. */
import { readFileSync } from "node:fs";
import { freemem } from "node:os";
import { dirname, join } from "node:path";

/** What a version of control groups calls things. */
interface Version {
  /** The line of /proc/self/cgroup that names ours. */
  readonly line: RegExp;
  readonly folder: string;
  readonly limit: string;
  readonly used: string;
  /** File cache in `memory.stat`, which goes where memory is wanted. */
  readonly cache: RegExp;
}

const VERSIONS: readonly Version[] = [
  {
    line: /^0::(\/.*)$/m,
    folder: "sys/fs/cgroup",
    limit: "memory.max",
    used: "memory.current",
    cache: /^(?:in)?active_file (\d+)$/gm,
  },
  {
    line: /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(\/.*)$/m,
    folder: "sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    cache: /^total_(?:in)?active_file (\d+)$/gm,
  },
];

/**
 * Bytes, file cache included; elsewhere than on Linux, what the system calls free.
 * @param swaps whether memory of others that can be swapped out counts too, without which nothing has to end yet
 * @param root for tests
 */
export function availableMemory({ swaps = false, root = "/" } = {}): number {
  const system = read(join(root, "proc/meminfo"));
  if (system === undefined) return Math.min(freemem(), process.availableMemory());
  const bytesOf = (name: string): number => 1024 * Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(system)?.[1]);
  return Math.min(bytesOf("MemAvailable") + (swaps ? bytesOf("SwapFree") : 0), ...roomsOfGroups(root));
}

/** What our groups and those around them leave, as far as they are limited. */
function roomsOfGroups(root: string): number[] {
  const groups = read(join(root, "proc/self/cgroup")) ?? "";
  const rooms: number[] = [];
  for (const version of VERSIONS) {
    let path = version.line.exec(groups)?.[1];
    while (path !== undefined) {
      const room = roomOf(join(root, version.folder, path), version);
      if (room !== undefined) rooms.push(room);
      path = path === "/" ? undefined : dirname(path);
    }
  }
  return rooms;
}

function roomOf(folder: string, { limit, used, cache }: Version): number | undefined {
  const [most, taken] = [limit, used].map((name) => Number(read(join(folder, name)) ?? NaN)) as [number, number];
  if (!Number.isFinite(most) || !Number.isFinite(taken)) return undefined; // the word for none is no number
  const cached = (read(join(folder, "memory.stat")) ?? "").matchAll(cache);
  return Math.max(0, most - taken + [...cached].reduce((sum, [, bytes]) => sum + Number(bytes), 0));
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined; // another system, or a container that hides it
  }
}
