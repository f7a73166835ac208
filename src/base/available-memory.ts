/**
 * Memory that a process can still allocate before Linux's OOM killer ends one, or another system begins to swap: limits
 * of the machine and of its control groups.
 */
import { readFileSync } from "node:fs";
import { freemem, totalmem } from "node:os";
import { dirname, join } from "node:path";
import { MAC_FACTS, type MacFacts } from "./mac-facts.ts";

/** The names that a version of control groups uses. */
interface Version {
  /** Matches our line of /proc/self/cgroup. */
  readonly line: RegExp;
  readonly folder: string;
  readonly limit: string;
  readonly used: string;
  /** File cache in `memory.stat`; the kernel frees it when memory is needed. */
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
 * Bytes, file cache included. Linux alone has limits of control groups.
 * @param swaps on Linux, also counts memory of other processes that can be swapped out
 * @param root for tests
 */
export function availableMemory({ swaps = false, root = "/" } = {}): number {
  const system = read(join(root, "proc/meminfo"));
  if (system === undefined) return macMemory() ?? Math.min(freemem(), process.availableMemory());
  const bytesOf = (name: string): number => 1024 * Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(system)?.[1]);
  return Math.min(bytesOf("MemAvailable") + (swaps ? bytesOf("SwapFree") : 0), ...roomsOfGroups(root));
}

/**
 * Bytes that macOS has free, or frees when memory is needed: pages of files, and memory that its owner can compute
 * again. `freemem` counts only the former, which macOS keeps near 0. Undefined on other systems.
 */
export function macMemory({ number }: Pick<MacFacts, "number"> = MAC_FACTS): number | undefined {
  const [page, free, files] = ["hw.pagesize", "vm.page_free_count", "vm.page_pageable_external_count"].map(number);
  if (page === undefined || free === undefined || files === undefined) return undefined;
  // pages of files include pages read ahead
  return page * (free + files + (number("vm.page_purgeable_count") ?? 0));
}

/** Maximum bytes that a process could allocate: the machine's memory, or the smallest limit of our control groups. */
export function totalMemory({ root = "/" } = {}): number {
  const limits = groupsAround(root).map(({ folder, version }) => numberIn(join(folder, version.limit)));
  const kilobytes = /^MemTotal:\s+(\d+) kB$/m.exec(read(join(root, "proc/meminfo")) ?? "")?.[1];
  return Math.min(kilobytes === undefined ? totalmem() : 1024 * Number(kilobytes), ...limits.filter(Number.isFinite));
}

/** Free bytes of our control groups and their parents, for each that has a limit. */
function roomsOfGroups(root: string): number[] {
  return groupsAround(root)
    .map(({ folder, version }) => roomOf(folder, version))
    .filter((room) => room !== undefined);
}

/** The folders of our control groups and of their parents. */
function groupsAround(root: string): { folder: string; version: Version }[] {
  const groups = read(join(root, "proc/self/cgroup")) ?? "";
  const found: { folder: string; version: Version }[] = [];
  for (const version of VERSIONS) {
    let path = version.line.exec(groups)?.[1];
    while (path !== undefined) {
      found.push({ folder: join(root, version.folder, path), version });
      path = path === "/" ? undefined : dirname(path);
    }
  }
  return found;
}

function roomOf(folder: string, { limit, used, cache }: Version): number | undefined {
  const [most, taken] = [limit, used].map((name) => numberIn(join(folder, name))) as [number, number];
  if (!Number.isFinite(most) || !Number.isFinite(taken)) return undefined;
  const cached = (read(join(folder, "memory.stat")) ?? "").matchAll(cache);
  return Math.max(0, most - taken + [...cached].reduce((sum, [, bytes]) => sum + Number(bytes), 0));
}

/** NaN if there is no such file or no limit: `max` is not a number. */
const numberIn = (path: string): number => Number(read(path) ?? NaN);

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined; // another system, or a container that hides the file
  }
}

/** Memory of a process, from Linux's `/proc`; undefined elsewhere, and for a process that has ended. */
export function residentBytes(pid: number): number | undefined {
  try {
    const found = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")); // a zombie has no VmRSS
    return found ? Number(found[1]) * 1024 : undefined;
  } catch {
    return undefined;
  }
}
