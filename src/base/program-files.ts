/**
 * Files that come with the program: in its source tree, or, in a compiled program, unpacked from it at first use.
 * Libraries can be opened, and weights mapped, only on a disk.
 */
import { lstatSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { AppError, messageOf } from "./errors.ts";
import { shipped, type Shipped, type ShippedFile } from "./shipped.ts";

const SOURCE_TREE = join(import.meta.dir, "../..");

/** The command line that starts this program again, without arguments. */
export function selfCommand(): string[] {
  return shipped ? [process.execPath] : [process.execPath, Bun.main];
}

/** The environment in which a child runs scripts with `process.execPath`, as Bun itself would. */
export function scriptEnv(): Record<string, string> {
  return shipped ? { BUN_BE_BUN: "1" } : {};
}

/**
 * The path of a file or folder on this machine's disk. Throws `storage` if it cannot be unpacked.
 * @param path in the source tree, with slashes
 */
export function programFile(path: string): string {
  return shipped ? unpack(shipped, path) : join(SOURCE_TREE, path);
}

/** Returns whether a compiled program contains a file or folder; unpacks nothing. */
export const hasInside = (path: string): boolean => shipped !== undefined && filesOf(shipped, path).length > 0;

/** The folder of a package we depend on. Throws if it is not installed. */
export function packageFolder(name: string, from: string = import.meta.dir): string {
  const path = `node_modules/${name}`;
  if (!shipped) return dirname(Bun.resolveSync(`${name}/package.json`, from));
  if (hasInside(path)) return unpack(shipped, path);
  const version = shipped.apart?.[name];
  if (version !== undefined) return fetchedFolder(name, version);
  throw new AppError("unsupported", `this program was compiled without the package '${name}'`);
}

function fetchedFolder(name: string, version: string): string {
  const folder = apartFolder(name, version);
  if (lstatSync(folder, { throwIfNoEntry: false }) === undefined)
    throw new AppError("unsupported", `the package '${name}' is not in this program: 'hearth update --gpu' fetches it`);
  checkOwnFolder(folder);
  return folder;
}

/** The folder of a package that is not inside the program, once it is fetched. */
export const apartFolder = (name: string, version: string): string => join(machineCache(), `${name}-${version}`);

const filesOf = ({ files }: Shipped, path: string): [string, ShippedFile][] =>
  Object.entries(files).filter(([name]) => name === path || name.startsWith(`${path}/`));

function unpack(program: Shipped, path: string): string {
  const folder = unpackFolder(program.id);
  for (const [name, { inside, isCompressed }] of filesOf(program, path)) {
    const target = join(folder, name);
    if (lstatSync(target, { throwIfNoEntry: false })?.isFile()) continue;
    const bytes = readFileSync(inside);
    writeWhole(target, isCompressed ? Bun.zstdDecompressSync(bytes) : bytes);
  }
  return join(folder, path);
}

/** In the user's cache, or without a home in a temporary folder of this user. */
function cacheFolders(platform: NodeJS.Platform): string[] {
  if (platform === "win32") return [join(homedir(), "AppData/Local/hearth")];
  return [join(homedir(), ".cache/hearth"), join(tmpdir(), `hearth-${process.getuid?.() ?? 0}`)];
}

/** The folder for results about this machine that any process of the user may compute again. */
export const machineCache = (): string => cacheFolders(process.platform)[0]!; // every system has one

function unpackFolder(id: string): string {
  const parents = cacheFolders(process.platform);
  const problems: string[] = [];
  for (const parent of parents) {
    const folder = join(parent, `program-${id}`);
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      checkOwnFolder(folder);
      return folder;
    } catch (error) {
      problems.push(messageOf(error));
    }
  }
  throw new AppError("storage", `no folder to unpack this program's files into: ${problems.join("; ")}`);
}

/**
 * Throws `unsupported` unless it is a folder that only this user can change: code is loaded from it. On Windows access
 * lists decide that: the user's folder for the data of programs is private, and each mode is 0o666.
 */
export function checkOwnFolder(folder: string): void {
  const found = lstatSync(folder);
  const othersWrite = 0o022;
  const isOwn = process.getuid === undefined || found.uid === process.getuid();
  const isClosed = process.platform === "win32" || (found.mode & othersWrite) === 0;
  if (found.isDirectory() && isOwn && isClosed) return;
  throw new AppError("unsupported", `'${folder}': expected a folder that only this user can change`);
}

/** Writes and renames, so that the file appears whole: several processes may unpack at once. */
function writeWhole(target: string, bytes: Uint8Array): void {
  mkdirSync(dirname(target), { recursive: true });
  const own = mkdtempSync(`${target}-`);
  try {
    const partial = join(own, "file");
    writeFileSync(partial, bytes, { mode: 0o755 });
    renameSync(partial, target);
  } catch (error) {
    // On Windows, another process has its own file open
    if (lstatSync(target, { throwIfNoEntry: false })?.isFile()) return;
    throw new AppError("storage", `'${target}': cannot be unpacked: ${messageOf(error)}`, { cause: error });
  } finally {
    rmSync(own, { recursive: true, force: true });
  }
}
