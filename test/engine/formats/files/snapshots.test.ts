/** Snapshots of prefixes as files: they are restored completely or not at all, and stay within their bound. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdir, mkdtemp, readdir, rm, stat, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SnapshotInfo } from "../../../../src/engine/formats/snapshots.ts";
import { openSnapshots, snapshotsOf, trimSnapshots } from "../../../../src/engine/formats/files/snapshots.ts";
import { eventually } from "../../../e2e/hearth.ts";

let root = "";
beforeEach(async () => void (root = await mkdtemp(join(tmpdir(), "hearth-snapshots-"))));
afterEach(() => rm(root, { recursive: true }));

const open = (bytesMax = 1e6, scope = "a model") => openSnapshots({ root, scope, bytesMax });
const infoOf = (n: number, parent = ""): SnapshotInfo => ({
  name: `00000000-0000-4000-8000-${String(n).padStart(12, "0")}`,
  parent,
  tokens: [n, 2, 3],
  checkpoints: [{ length: 2, bytes: 4 }],
});
const bytesOf = (n: number, length = 40): Uint8Array => new Uint8Array(length).fill(n);
async function files(): Promise<string[]> {
  const all: string[] = [];
  for (const scope of await readdir(root)) {
    for (const file of await readdir(join(root, scope))) all.push(join(root, scope, file));
  }
  return all.toSorted();
}

test("a written snapshot is read by the next process, in the same scope only", async () => {
  const store = open();
  const second = infoOf(2, infoOf(1).name);
  store.write(infoOf(1), [bytesOf(1), bytesOf(9, 4)]);
  store.write(second, [bytesOf(2)]);
  expect(store.read(infoOf(1).name)).toEqual(Uint8Array.of(...bytesOf(1), ...bytesOf(9, 4))); // not written yet
  await store.flush();
  const next = open();
  const byName = (a: SnapshotInfo, b: SnapshotInfo): number => a.name.localeCompare(b.name);
  expect((await next.list()).toSorted(byName)).toEqual([infoOf(1), second]);
  expect([...next.read(infoOf(1).name)!]).toEqual([...bytesOf(1), ...bytesOf(9, 4)]);
  expect([...next.read(second.name)!]).toEqual([...bytesOf(2)]);
  expect(await open(1e6, "another model").list()).toEqual([]);
  expect((await stat((await files())[0]!)).mode & 0o077).toBe(0);
});

test("a snapshot with any changed or missing byte is not read", async () => {
  const store = open();
  store.write(infoOf(1), [bytesOf(1)]);
  await store.flush();
  const [path] = await files();
  const whole = new Uint8Array(await Bun.file(path!).arrayBuffer());
  for (let at = 0; at < whole.length; at++) {
    await writeFile(path!, whole.with(at, whole[at]! ^ 0x10));
    expect(open().read(infoOf(1).name), `byte ${at}`).toBeUndefined();
  }
  for (let length = 0; length < whole.length; length++) {
    await writeFile(path!, whole.subarray(0, length));
    expect(open().read(infoOf(1).name), `${length} bytes`).toBeUndefined();
  }
  await writeFile(path!, whole);
  expect(open().read(infoOf(1).name)).toBeDefined();
});

test("a snapshot under another name or in another model's folder is removed", async () => {
  const [store, other] = [open(), open(1e6, "another model")];
  const second = infoOf(2, infoOf(1).name);
  store.write(infoOf(1), [bytesOf(1)]);
  store.write(second, [bytesOf(2)]);
  await store.flush();
  const [first, next] = (await files()) as [string, string];
  other.write(infoOf(1), [bytesOf(1)]);
  await other.flush();
  const [foreign] = (await files()).filter((path) => path !== first && path !== next) as [string];
  const own = await Bun.file(first).bytes();
  await writeFile(first, await Bun.file(next).bytes());
  await writeFile(next, own);
  expect([infoOf(1).name, second.name].map((name) => open().read(name))).toEqual([undefined, undefined]);
  await writeFile(next, await Bun.file(foreign).bytes());
  await writeFile(foreign, own);
  expect(await open().list()).toEqual([]);
  expect(await open(1e6, "another model").list()).toEqual([]);
  expect(await files()).toEqual([]);
});

test("a snapshot of an earlier format is removed", async () => {
  const store = open();
  store.write(infoOf(1), [bytesOf(1)]);
  await store.flush();
  const [path] = (await files()) as [string];
  const bytes = Buffer.from(await Bun.file(path).bytes());
  bytes.write("HSNP0001", "latin1");
  await writeFile(path, bytes);
  expect(open().read(infoOf(1).name)).toBeUndefined();
  expect(await open().list()).toEqual([]);
  expect(await files()).toEqual([]);
});

test("listing removes files that are no snapshots", async () => {
  const store = open();
  for (const n of [1, 2, 3]) store.write(infoOf(n), [bytesOf(n)]);
  await store.flush();
  const [first, second] = await files();
  await writeFile(first!, "something else");
  await writeFile(`${second!}.tmp`, "half");
  await writeFile(join(first!, "..", "..-..-..-..-..-..-..-..-..-..-..-..-.kv"), "x");
  const found = await open().list();
  expect(found.map(({ name }) => name).toSorted()).toEqual([infoOf(2).name, infoOf(3).name]);
  expect(await files()).toHaveLength(2);
});

test("snapshots take at most half of the free disk space, and none of a full disk", async () => {
  let used = 0;
  const freeBytes = async (): Promise<number> => {
    const sizes = await Promise.all((await files()).map(async (path) => (await stat(path)).size));
    return Math.max(0, 20_000 - used - sizes.reduce((sum, size) => sum + size, 0));
  };
  const make = () => openSnapshots({ root, scope: "a model", bytesMax: 1e6, freeBytes });
  let store = make();
  const writeAll = async (from: number, count: number): Promise<void> => {
    for (let i = from; i < from + count; i++) {
      store.write(infoOf(i), [bytesOf(i, 1000)]);
      await store.flush();
      await Bun.sleep(2); // another time of use
    }
  };
  await writeAll(1, 30);
  expect((await files()).length).toBeWithin(6, 10);
  expect(store.read(infoOf(30).name)).toEqual(bytesOf(30, 1000));
  expect(store.read(infoOf(1).name)).toBeUndefined();
  used = 16_000; // by another process: this process knows half of the used bytes
  await writeAll(31, 1);
  expect((await files()).length).toBeWithin(1, 5);
  await rm(root, { recursive: true });
  await mkdir(root);
  used = 20_000;
  store = make();
  await writeAll(32, 1);
  expect(await files()).toEqual([]);
});

test("a folder in place of a snapshot that cannot be removed is ignored", async () => {
  const store = open();
  store.write(infoOf(1), [bytesOf(1)]);
  await store.flush();
  const [first] = await files();
  await mkdir(join(first!, "..", `${infoOf(2).name}.kv`, "x"), { recursive: true });
  expect((await open().list()).map(({ name }) => name)).toEqual([infoOf(1).name]);
});

test("trimSnapshots applies a lower bound at once, and 0 removes all", async () => {
  const cacheDir = join(root, "cache");
  const store = openSnapshots({ root: join(cacheDir, "prefixes"), scope: "a model", bytesMax: 1e6 });
  for (const n of [1, 2, 3]) store.write(infoOf(n), [bytesOf(n, 4000)]);
  await store.flush();
  await trimSnapshots(cacheDir, 9000);
  expect(await store.list()).toHaveLength(2);
  await trimSnapshots(cacheDir, 0);
  expect(await store.list()).toEqual([]);
  await trimSnapshots(join(root, "nowhere"), 0);
});

test.each([
  { parent: "../x" },
  { tokens: "many" },
  { tokens: [] },
  { tokens: ["1"] },
  { tokens: [0.5] },
  { checkpoints: [{ length: "1", bytes: 2 }] },
  { checkpoints: [null] },
  { checkpoints: 4 },
])("a header with a valid checksum and %p is refused", async (wrong) => {
  const store = open();
  store.write({ ...infoOf(1), ...wrong } as unknown as SnapshotInfo, [bytesOf(1)]);
  await store.flush();
  expect(await files()).toHaveLength(1);
  expect(await open().list()).toEqual([]);
});

test("the least recently used snapshot of all models is removed first", async () => {
  const other = open(1e6, "another model");
  other.write(infoOf(7), [bytesOf(7, 4000)]);
  await other.flush();
  const [old] = await files();
  await utimes(old!, 1000, 1000);
  const store = open(20_000);
  for (const n of [1, 2, 3]) store.write(infoOf(n), [bytesOf(n, 4000)]);
  await store.flush();
  for (const path of await files()) if (path !== old) await utimes(path, 2000, 2000);
  store.touch([infoOf(1).name]);
  const times = async () => Promise.all((await files()).map(async (path) => (await stat(path)).mtimeMs));
  expect(await eventually(async () => Math.max(...(await times())) > 2e6)).toBe(true);
  for (const n of [4, 5]) store.write(infoOf(n), [bytesOf(n, 4000)]);
  await store.flush();
  const namesIn = async () => (await store.list()).map(({ tokens }) => tokens[0]!);
  // a flush does not wait for a slow disk
  expect(await eventually(async () => (await namesIn()).includes(5))).toBe(true);
  expect(await other.list()).toEqual([]);
  const left = (await namesIn()).toSorted();
  expect(left).toEqual(expect.arrayContaining([1, 4, 5]));
  expect(left.length).toBeLessThan(5);
});

test("a snapshot removed before its write is not written, and an unwritable folder is no error", async () => {
  const store = open();
  store.write(infoOf(1), [bytesOf(1)]);
  store.write(infoOf(2), [bytesOf(2)]);
  store.remove(infoOf(1).name);
  await store.flush();
  expect(await files()).toHaveLength(1);
  store.remove(infoOf(2).name);
  expect(await eventually(async () => (await files()).length === 0)).toBe(true);
  await writeFile(join(root, "file"), "");
  const nowhere = openSnapshots({ root: join(root, "file"), scope: "x", bytesMax: 1e6 });
  nowhere.write(infoOf(1), [bytesOf(1)]);
  await nowhere.flush();
  expect(nowhere.read(infoOf(1).name)).toBeUndefined();
  expect(await nowhere.list()).toEqual([]);
});

/** A store whose disk stores nothing before `release`. */
function slowStore() {
  const [asked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const freeBytes = async (): Promise<number> => {
    asked.resolve();
    await released.promise;
    return 1e9;
  };
  const store = openSnapshots({ root, scope: "a model", bytesMax: 1e6, freeBytes });
  return { store, isWriting: asked.promise, release: released.resolve };
}

test("a snapshot in a pending write can be read, and so can its replacement", async () => {
  const { store, isWriting, release } = slowStore();
  store.write(infoOf(1), [bytesOf(1)]);
  await isWriting;
  expect(store.read(infoOf(1).name)).toEqual(bytesOf(1));
  store.write(infoOf(1), [bytesOf(2)]);
  expect(store.read(infoOf(1).name)).toEqual(bytesOf(2));
  release();
  await store.flush();
  expect([...store.read(infoOf(1).name)!]).toEqual([...bytesOf(2)]);
  expect(await files()).toHaveLength(1);
});

test("a snapshot removed during its write is gone, and is not written", async () => {
  const { store, isWriting, release } = slowStore();
  store.write(infoOf(1), [bytesOf(1)]);
  await isWriting;
  store.write(infoOf(2), [bytesOf(2)]);
  store.remove(infoOf(1).name);
  expect(store.read(infoOf(1).name)).toBeUndefined();
  release();
  await store.flush();
  expect((await store.list()).map(({ name }) => name)).toEqual([infoOf(2).name]);
});

test("removing a snapshot with a pending replacement removes its file", async () => {
  const store = open();
  store.write(infoOf(1), [bytesOf(1)]);
  await store.flush();
  store.write(infoOf(1), [bytesOf(2)]);
  store.remove(infoOf(1).name);
  expect(await eventually(async () => (await files()).length === 0)).toBe(true);
});

test("the scope of a blob is its name; that of another file also changes with its contents", async () => {
  const scopes = async (path: string): Promise<string[]> => {
    await rm(join(root, "prefixes"), { recursive: true, force: true });
    const store = snapshotsOf([path], { cacheDir: root, bytesMax: 1e6 })("layout");
    store.write(infoOf(1), [bytesOf(1)]);
    await store.flush();
    return readdir(join(root, "prefixes"));
  };
  const blob = `sha256-${"ab".repeat(32)}`;
  expect(await scopes(join(root, "x", blob))).toEqual(await scopes(join(root, "y", blob)));
  const path = join(root, "model.gguf");
  await writeFile(path, "weights");
  const before = await scopes(path);
  expect(await scopes(path)).toEqual(before);
  await writeFile(path, "other weights");
  expect(await scopes(path)).not.toEqual(before);
});
