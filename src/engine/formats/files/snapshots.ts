/**
 * Snapshots of prefixes in a folder: a file per block, in a folder per model and layout. A file has a header and bytes,
 * each with a checksum, and is written under a temporary name first. It is not synced: the checksum detects a file torn
 * by a crash, which then counts as missing. The checksums also cover the file's own name and scope, so a file under
 * another name, or in another folder, counts as missing too. Names are random: a parent's name, which the header
 * contains, identifies a single block. Blocks hold users' text, so only their owner can read them.
 */
import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { mkdir, open, readdir, rename, rm, stat, statfs, utimes } from "node:fs/promises";
import { basename, join } from "node:path";
import { patiently } from "../../../base/system.ts";
import type { SnapshotInfo, SnapshotStore } from "../snapshots.ts";

const FOLDER = "prefixes";
const MAGIC = "HSNP0002";
/** Magic, checksum of the header, checksum of the bytes, bytes of the header. */
const PREAMBLE_BYTES = 8 + 8 + 8 + 4;
const HEADER_BYTES_MAX = 64 * 1024;
const FILE_BYTES_MAX = 2 ** 30;
const FILES_MAX = 16_384;
/** Maximum bytes of blocks that wait to be written; more are dropped. */
const WAITING_BYTES_MAX = 256 * 2 ** 20;
/** A block that is replaced within this time is never written. */
const SETTLE_MS = 500;
const FLUSH_MS = 1000;
/** The shortest time between two updates of a file's last use. */
const TOUCH_MS = 10 * 60_000;
/** Delay of an update of the last use, so that the answer that reads the file begins first. */
const TOUCH_AFTER_MS = 250;
/** Share of the maximum that remains after an eviction. */
const KEPT_SHARE = 0.9;
/**
 * Share of the disk space that would be free without snapshots; the rest is for models, deliveries and other programs.
 */
const DISK_SHARE = 1 / 2;
const BLOB = /^sha256-[0-9a-f]{64}$/;
const NAME = /^[0-9a-f-]{36}$/;

interface Options {
  /** Folder of all snapshots. */
  readonly root: string;
  /** Identifies the owner of the blocks: blocks of other scopes never match. */
  readonly scope: string;
  /** Maximum bytes of all files below `root`; less if the disk is nearly full. */
  readonly bytesMax: number;
  /** Free bytes of a folder's disk; absent: as the system says. */
  readonly freeBytes?: FreeBytes;
}

type FreeBytes = (folder: string) => Promise<number>;

/** Infinity if the system does not report it. */
const freeOnDisk: FreeBytes = async (folder) => {
  const found = await statfs(folder).catch(() => undefined);
  return found ? found.bavail * found.bsize : Infinity;
};

/** Snapshots of prefixes for the model with these files; `layout` identifies all other inputs of the blocks' bytes. */
export function snapshotsOf(
  paths: readonly string[],
  { cacheDir, bytesMax }: { cacheDir: string; bytesMax: number },
): (layout: string) => SnapshotStore {
  const root = join(cacheDir, FOLDER);
  return (layout) => openSnapshots({ root, scope: JSON.stringify([layout, ...paths.map(identityOf)]), bytesMax });
}

/** Removes snapshots beyond `bytesMax`, for instance after the setting was lowered, or all of them. */
export async function trimSnapshots(cacheDir: string, bytesMax: number): Promise<void> {
  await makeRoom(join(cacheDir, FOLDER), bytesMax).catch(() => 0); // snapshots stay if they cannot be removed
}

/**
 * The identity of a model file. A blob's name identifies its content; other files count as unchanged until they are
 * written to.
 */
function identityOf(path: string): string {
  const name = basename(path);
  if (BLOB.test(name)) return name;
  const { size, mtimeMs, ino } = statSync(path);
  return JSON.stringify([path, size, mtimeMs, ino]);
}

interface Waiting {
  readonly info: SnapshotInfo;
  readonly parts: readonly Uint8Array[];
  readonly bytes: number;
}

export function openSnapshots({ root, scope, bytesMax, freeBytes = freeOnDisk }: Options): SnapshotStore {
  const folder = join(root, new Bun.CryptoHasher("sha256").update(scope).digest("hex").slice(0, 32));
  const placeOf = (name: string): Place => ({
    path: join(folder, `${name}.kv`),
    seed: Bun.hash.xxHash3(`${name} ${scope}`),
  });
  const pathOf = (name: string): string => placeOf(name).path;
  const queue = makeQueue({ root, folder, bytesMax, freeBytes, placeOf });
  const touched = new Map<string, number>();
  const markUsed = async (due: readonly (readonly [depth: number, name: string])[], now: number): Promise<void> => {
    for (const [depth, name] of due) {
      const when = new Date(now - depth); // the first block of a prefix is evicted last
      await utimes(pathOf(name), when, when).catch(() => {});
    }
  };
  const readBlock = makeReader();
  return {
    async list() {
      const names = await readdir(folder).catch(() => []);
      const infos: SnapshotInfo[] = [];
      for (const file of names.slice(0, FILES_MAX)) {
        const name = file.slice(0, -3);
        const info = file.endsWith(".kv") && NAME.test(name) ? readInfo(placeOf(name), name) : undefined;
        if (info) infos.push(info);
        else await rm(join(folder, file), { force: true }).catch(() => {}); // a folder, or a read-only disk
      }
      return infos;
    },
    read(name) {
      const own = queue.find(name);
      return own ? plain(Buffer.concat(own.parts)) : readBlock(placeOf(name));
    },
    write: (info, parts) => queue.add(info, parts),
    remove(name) {
      touched.delete(name);
      queue.remove(name);
      void rm(pathOf(name), { force: true }).catch(() => {});
    },
    touch(names) {
      const now = Date.now();
      const due = [...names.entries()].filter(([, name]) => now - (touched.get(name) ?? 0) >= TOUCH_MS);
      for (const [, name] of due) touched.set(name, now);
      if (due.length > 0) setTimeout(() => void markUsed(due, now), TOUCH_AFTER_MS).unref();
    },
    flush: queue.flush,
  };
}

/** The path of a block's file, and the seed of its checksums. */
interface Place {
  readonly path: string;
  readonly seed: bigint;
}

interface Queue {
  /** A block that is not on the disk yet. */
  find(name: string): Waiting | undefined;
  add(info: SnapshotInfo, parts: readonly Uint8Array[]): void;
  /** Removes a block; one that is being written is removed once it is complete. */
  remove(name: string): void;
  flush(): Promise<void>;
}

/** Queue of blocks to write. */
function makeQueue({
  root,
  folder,
  bytesMax,
  freeBytes,
  placeOf,
}: Omit<Required<Options>, "scope"> & { folder: string; placeOf: (name: string) => Place }): Queue {
  const waiting = new Map<string, Waiting>();
  let waitingBytes = 0;
  let current: Waiting | undefined; // the block that is being written, unless it was removed meanwhile
  let writing: Promise<void> | undefined;
  let hurry = Promise.withResolvers<void>();
  let total: number | undefined; // bytes below root, as far as known

  const take = (name: string): Waiting | undefined => {
    const own = waiting.get(name);
    waitingBytes -= own?.bytes ?? 0;
    waiting.delete(name);
    return own;
  };
  const writeAll = async (): Promise<void> => {
    hurry = Promise.withResolvers(); // one for all waits would keep each of them
    await Promise.race([hurry.promise, Bun.sleep(SETTLE_MS)]);
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      for (const name of waiting.keys()) {
        const next = (current = take(name)!); // `name` is one of the keys
        total ??= await makeRoom(root, bytesMax);
        const most = Math.min(bytesMax, (total + (await freeBytes(folder))) * DISK_SHARE);
        if (next.bytes > most * KEPT_SHARE) continue;
        if (total + next.bytes > most) total = await makeRoom(root, most * KEPT_SHARE - next.bytes);
        await writeBlock(placeOf(name), next);
        if (current === next) total += next.bytes;
        else await rm(placeOf(name).path, { force: true });
      }
    } catch {
      waiting.clear(); // a full or read-only disk only means that prefixes are evaluated again
      waitingBytes = 0;
    }
    current = undefined;
    writing = undefined;
  };
  return {
    find: (name) => waiting.get(name) ?? (current?.info.name === name ? current : undefined),
    add(info, parts) {
      const bytes = parts.reduce((sum, { length }) => sum + length, 0);
      if (waitingBytes + bytes > Math.min(WAITING_BYTES_MAX, bytesMax)) return;
      take(info.name);
      waiting.set(info.name, { info, parts, bytes });
      waitingBytes += bytes;
      writing ??= writeAll();
    },
    remove(name) {
      take(name);
      if (current?.info.name === name) current = undefined;
    },
    async flush() {
      hurry.resolve();
      if (writing) await Promise.race([writing, Bun.sleep(FLUSH_MS)]);
    },
  };
}

async function writeBlock({ path, seed }: Place, { info, parts }: Waiting): Promise<void> {
  const { name: _, ...rest } = info;
  const header = Buffer.from(JSON.stringify(rest));
  const payload = parts.length === 1 ? parts[0]! : Buffer.concat(parts);
  const preamble = Buffer.alloc(PREAMBLE_BYTES);
  preamble.write(MAGIC, "latin1");
  preamble.writeBigUInt64LE(Bun.hash.xxHash3(header, seed), 8);
  preamble.writeBigUInt64LE(Bun.hash.xxHash3(payload, seed), 16);
  preamble.writeUInt32LE(header.length, 24);
  const temporary = `${path}.tmp`;
  try {
    const file = await open(temporary, "w", 0o600);
    try {
      await file.writev([preamble, header, payload]);
    } finally {
      await file.close();
    }
    await patiently(() => rename(temporary, path));
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** Undefined if the file is not a snapshot, or its header is damaged. */
function readInfo({ path, seed }: Place, name: string): SnapshotInfo | undefined {
  try {
    const start = readStart(path);
    const header = headerOf(start, seed);
    return header && parseInfo(name, JSON.parse(header.toString("utf8")));
  } catch {
    return undefined;
  }
}

function readStart(path: string): Buffer {
  const fd = openSync(path, "r");
  try {
    const bytes = Buffer.alloc(PREAMBLE_BYTES + HEADER_BYTES_MAX);
    return bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, 0));
  } finally {
    closeSync(fd);
  }
}

function headerOf(bytes: Buffer, seed: bigint): Buffer | undefined {
  if (bytes.length < PREAMBLE_BYTES || bytes.toString("latin1", 0, 8) !== MAGIC) return undefined;
  const length = bytes.readUInt32LE(24);
  if (length > HEADER_BYTES_MAX || PREAMBLE_BYTES + length > bytes.length) return undefined;
  const header = bytes.subarray(PREAMBLE_BYTES, PREAMBLE_BYTES + length);
  return Bun.hash.xxHash3(header, seed) === bytes.readBigUInt64LE(8) ? header : undefined;
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

function parseInfo(name: string, value: unknown): SnapshotInfo | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { parent, tokens, checkpoints, adapters } = value as Partial<Record<keyof SnapshotInfo, unknown>>;
  if (typeof parent !== "string" || !(parent === "" || NAME.test(parent))) return undefined;
  if (!Array.isArray(tokens) || tokens.length === 0 || !tokens.every((token) => Number.isSafeInteger(token)))
    return undefined;
  if (!Array.isArray(checkpoints)) return undefined;
  if (adapters !== undefined && typeof adapters !== "string") return undefined;
  const kept = checkpoints as (Partial<Record<"length" | "bytes", unknown>> | null)[];
  if (!kept.every((each) => isCount(each?.length) && isCount(each.bytes))) return undefined;
  const made = adapters === undefined ? {} : { adapters };
  return { name, parent, tokens, checkpoints: checkpoints as SnapshotInfo["checkpoints"], ...made };
}

/** A plain Uint8Array, because `slice` of a Buffer does not copy. */
const plain = ({ buffer, byteOffset, length }: Buffer): Uint8Array => new Uint8Array(buffer, byteOffset, length);

/** Reads blocks into the same memory: allocating new pages would take longer than reading the content. */
function makeReader(): (place: Place) => Uint8Array | undefined {
  let room = Buffer.alloc(0);
  const readWhole = (path: string): Buffer | undefined => {
    const fd = openSync(path, "r");
    try {
      const { size } = fstatSync(fd);
      if (size > FILE_BYTES_MAX) return undefined;
      if (room.length < size) room = Buffer.alloc(size + PREAMBLE_BYTES + HEADER_BYTES_MAX);
      return room.subarray(0, readSync(fd, room, 0, size, 0));
    } finally {
      closeSync(fd);
    }
  };
  return ({ path, seed }) => {
    try {
      const bytes = readWhole(path);
      const header = bytes && headerOf(bytes, seed);
      if (!header) return undefined;
      const payload = bytes.subarray(PREAMBLE_BYTES + header.length);
      return Bun.hash.xxHash3(payload, seed) === bytes.readBigUInt64LE(16) ? plain(payload) : undefined;
    } catch {
      return undefined; // the file was removed
    }
  };
}

/**
 * Removes the least recently used files until at most `bytesMax` bytes remain; returns the number of remaining bytes.
 */
async function makeRoom(root: string, bytesMax: number): Promise<number> {
  const files: { path: string; bytes: number; usedMs: number }[] = [];
  for (const scope of await readdir(root).catch(() => [])) {
    for (const file of await readdir(join(root, scope)).catch(() => [])) {
      const path = join(root, scope, file);
      const found = await stat(path).catch(() => undefined);
      if (found?.isFile()) files.push({ path, bytes: found.size, usedMs: found.mtimeMs });
    }
  }
  let total = files.reduce((sum, { bytes }) => sum + bytes, 0);
  for (const { path, bytes } of files.toSorted((a, b) => a.usedMs - b.usedMs)) {
    if (total <= bytesMax) break;
    await patiently(() => rm(path, { force: true }));
    total -= bytes;
  }
  return total;
}
