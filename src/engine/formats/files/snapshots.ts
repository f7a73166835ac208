/**
 * Snapshots of prefixes in a folder: a file for each block, in a folder for each model and layout. A file has a header
 * and bytes, each with a checksum, and is written to a temporary name first. It is not synced: what a crash tears is
 * told by its checksum, and is as good as gone. The checksums begin with the file's own name and scope, so that a file
 * under another's name, or in another's folder, is as good as gone too. Names are random: a parent's name, which the
 * header has, means one block only. They hold what people wrote, so that only their owner can read them.
 */
import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { mkdir, open, readdir, rename, rm, stat, statfs, utimes } from "node:fs/promises";
import { basename, join } from "node:path";
import type { SnapshotInfo, SnapshotStore } from "../snapshots.ts";

const FOLDER = "prefixes";
const MAGIC = "HSNP0002";
/** Magic, checksum of the header, checksum of the bytes, bytes of the header. */
const PREAMBLE_BYTES = 8 + 8 + 8 + 4;
const HEADER_BYTES_MAX = 64 * 1024;
const FILE_BYTES_MAX = 2 ** 30;
const FILES_MAX = 16_384;
/** Blocks that wait to be written; more are not kept. */
const WAITING_BYTES_MAX = 256 * 2 ** 20;
/** A block that is replaced so soon is never written. */
const SETTLE_MS = 500;
const FLUSH_MS = 1000;
/** A file is marked as used at most so often. */
const TOUCH_MS = 10 * 60_000;
/** And so much later, as an answer begins meanwhile that waits for what is in it. */
const TOUCH_AFTER_MS = 250;
/** Where there are too many bytes, so much of them stays. */
const KEPT_SHARE = 0.9;
/** Of what the disk would have free without them: the rest is for models, deliveries and other programs. */
const DISK_SHARE = 1 / 2;
const BLOB = /^sha256-[0-9a-f]{64}$/;
const NAME = /^[0-9a-f-]{36}$/;

interface Options {
  /** Folder of all snapshots. */
  readonly root: string;
  /** What the blocks belong to: other blocks never meet. */
  readonly scope: string;
  /** Most bytes of all files below `root`; fewer where the disk has little left. */
  readonly bytesMax: number;
  /** What a folder's disk has free, in bytes; absent: as the system says. */
  readonly freeBytes?: FreeBytes;
}

type FreeBytes = (folder: string) => Promise<number>;

/** Infinity where the system does not say. */
const freeOnDisk: FreeBytes = async (folder) => {
  const found = await statfs(folder).catch(() => undefined);
  return found ? found.bavail * found.bsize : Infinity;
};

/** Snapshots of prefixes of a model that is made of these files; told what else their bytes depend on. */
export function snapshotsOf(
  paths: readonly string[],
  { cacheDir, bytesMax }: { cacheDir: string; bytesMax: number },
): (layout: string) => SnapshotStore {
  const root = join(cacheDir, FOLDER);
  return (layout) => openSnapshots({ root, scope: JSON.stringify([layout, ...paths.map(identityOf)]), bytesMax });
}

/** Removes what there is beyond so many bytes of them, or of none, as where their setting was more before. */
export async function trimSnapshots(cacheDir: string, bytesMax: number): Promise<void> {
  await makeRoom(join(cacheDir, FOLDER), bytesMax).catch(() => 0); // they may stay where nothing can be removed
}

/** A blob's name says what is in it. Other files are taken for the same while nobody writes to them. */
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
      const when = new Date(now - depth); // the first block goes last
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
        else await rm(join(folder, file), { force: true }).catch(() => {}); // a folder, or a disk that is read-only
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

/** Where a block's file is, and what its checksums begin with. */
interface Place {
  readonly path: string;
  readonly seed: bigint;
}

interface Queue {
  /** A block that is not on the disk yet. */
  find(name: string): Waiting | undefined;
  add(info: SnapshotInfo, parts: readonly Uint8Array[]): void;
  /** One that is being written goes once it is there. */
  remove(name: string): void;
  flush(): Promise<void>;
}

/** Blocks on their way to the disk. */
function makeQueue({
  root,
  folder,
  bytesMax,
  freeBytes,
  placeOf,
}: Omit<Required<Options>, "scope"> & { folder: string; placeOf: (name: string) => Place }): Queue {
  const waiting = new Map<string, Waiting>();
  let waitingBytes = 0;
  let current: Waiting | undefined; // is being written, and nobody removed it
  let writing: Promise<void> | undefined;
  let hurry = Promise.withResolvers<void>();
  let total: number | undefined; // bytes below root, as far as is known

  const take = (name: string): Waiting | undefined => {
    const own = waiting.get(name);
    waitingBytes -= own?.bytes ?? 0;
    waiting.delete(name);
    return own;
  };
  const writeAll = async (): Promise<void> => {
    await Promise.race([hurry.promise, Bun.sleep(SETTLE_MS)]);
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      for (const name of waiting.keys()) {
        const next = (current = take(name)!); // it is one of the keys
        total ??= await makeRoom(root, bytesMax);
        const most = Math.min(bytesMax, (total + (await freeBytes(folder))) * DISK_SHARE);
        if (next.bytes > most * KEPT_SHARE) continue;
        if (total + next.bytes > most) total = await makeRoom(root, most * KEPT_SHARE - next.bytes);
        await writeBlock(placeOf(name), next);
        if (current === next) total += next.bytes;
        else await rm(placeOf(name).path, { force: true });
      }
    } catch {
      waiting.clear(); // a full or read-only disk: prefixes are evaluated again, that is all
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
      hurry = Promise.withResolvers();
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
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** Undefined where the file is no snapshot, or its header is damaged. */
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
  const { parent, tokens, checkpoints } = value as Partial<Record<keyof SnapshotInfo, unknown>>;
  if (typeof parent !== "string" || !(parent === "" || NAME.test(parent))) return undefined;
  if (!Array.isArray(tokens) || tokens.length === 0 || !tokens.every(isCount)) return undefined;
  if (!Array.isArray(checkpoints)) return undefined;
  const kept = checkpoints as (Partial<Record<"length" | "bytes", unknown>> | null)[];
  if (!kept.every((each) => isCount(each?.length) && isCount(each.bytes))) return undefined;
  return { name, parent, tokens, checkpoints: checkpoints as SnapshotInfo["checkpoints"] };
}

/** Not a Buffer, whose `slice` is no copy. */
const plain = ({ buffer, byteOffset, length }: Buffer): Uint8Array => new Uint8Array(buffer, byteOffset, length);

/** Reads blocks into the same memory: new pages would take longer to get than what is in them to read. */
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
      return undefined; // it is gone
    }
  };
}

/** Removes the files used longest ago until the rest has at most so many bytes; how many it has then. */
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
    await rm(path, { force: true });
    total -= bytes;
  }
  return total;
}
