/**
 * Confines transforms to one folder, by the real path behind links, and with them every file that they import by a
 * relative path. A version is the content of all these files, so that an edit makes a new version.
 */
import { createHash } from "node:crypto";
import { type BigIntStats, realpathSync, readFileSync, statSync } from "node:fs";
import { dirname, extname, isAbsolute, relative, resolve, sep } from "node:path";
import { AppError, messageOf } from "../../../../base/index.ts";

const FILES_MAX = 200;
const FILE_BYTES_MAX = 1024 * 1024;
const LOADERS = {
  ".ts": "ts",
  ".mts": "ts",
  ".tsx": "tsx",
  ".js": "js",
  ".mjs": "js",
  ".cjs": "js",
  ".jsx": "jsx",
} as const;

export interface ModuleVersion {
  /** Real path. */
  readonly file: string;
  /** SHA-256 of all its files, hex. */
  readonly version: string;
  /** Stamps of all its files when they were read. */
  readonly stamps: ReadonlyMap<string, string>;
}

/**
 * Finds and reads a module. Throws `bad_file` naming it.
 * @param folder absolute
 */
export function findModule(folder: string, module: string): ModuleVersion {
  const root = realPath(folder, `the folder of transforms '${folder}'`);
  const file = confined(root, module);
  const stamps = new Map<string, string>();
  const hash = createHash("sha256");
  const waiting = [file];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (stamps.has(path)) continue;
    if (stamps.size === FILES_MAX) throw badFile(module, `it imports more than ${FILES_MAX} files`);
    const stats = statSync(path, { bigint: true });
    if (!stats.isFile()) throw badFile(module, `'${relative(root, path)}' is not a file`);
    if (stats.size > FILE_BYTES_MAX) {
      throw badFile(module, `'${relative(root, path)}': expected at most ${FILE_BYTES_MAX} bytes, got ${stats.size}`);
    }
    stamps.set(path, stampOf(stats));
    const source = readFileSync(path);
    hash.update(`${relative(root, path)}\0${source.length}\0`).update(source);
    waiting.push(...importsOf(path, { source: source.toString(), root, module }));
  }
  return { file, version: hash.digest("hex"), stamps };
}

/** True if the files of a version are unchanged, by size and modification time. */
export function isCurrent({ stamps }: ModuleVersion): boolean {
  for (const [path, stamp] of stamps) {
    const stats = statSync(path, { bigint: true, throwIfNoEntry: false });
    if (!stats || stampOf(stats) !== stamp) return false;
  }
  return true;
}

const stampOf = ({ ino, size, ctimeNs, mtimeNs }: BigIntStats): string => `${ino} ${size} ${ctimeNs} ${mtimeNs}`;

const badFile = (module: string, problem: string): AppError =>
  new AppError("bad_file", `transform '${module}': ${problem}`);

/** Checks the path as written, then the real path. */
function confined(root: string, module: string): string {
  if (/^[a-z][a-z\d+.-]+:/i.test(module) || /^[a-z]:[\\/]/i.test(module) || module.includes("\0")) {
    throw badFile(module, "expected a path in the folder of transforms");
  }
  const written = resolve(root, module);
  if (!isInside(root, written)) throw badFile(module, "it is outside of the folder of transforms");
  if (!(extname(written) in LOADERS)) {
    throw badFile(module, `expected a file that ends in ${Object.keys(LOADERS).join(", ")}`);
  }
  const real = realPath(written, `transform '${module}'`);
  if (!isInside(root, real)) throw badFile(module, "it is a link to outside of the folder of transforms");
  return real;
}

function isInside(root: string, path: string): boolean {
  const way = relative(root, path);
  return way !== "" && way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}

function realPath(path: string, name: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    throw new AppError("bad_file", `${name}: ${messageOf(error)}`, { cause: error });
  }
}

interface Importer {
  readonly source: string;
  readonly root: string;
  readonly module: string;
}

/** Files that one imports by relative paths. Packages and built-in modules are not followed. */
function importsOf(path: string, { source, root, module }: Importer): string[] {
  const loader = LOADERS[extname(path) as keyof typeof LOADERS];
  if (!loader) return []; // data, as in `import table from "./table.json"`
  let specifiers: string[];
  try {
    specifiers = new Bun.Transpiler({ loader }).scanImports(source).map((each) => each.path);
  } catch (error) {
    throw badFile(module, `'${relative(root, path)}' cannot be read as code: ${messageOf(error).split("\n")[0]}`);
  }
  return specifiers.filter(isOfFile).map((specifier) => {
    const found = resolveFrom(path, specifier);
    if (found === undefined) throw badFile(module, `'${relative(root, path)}' imports '${specifier}': no such file`);
    if (isInside(root, found)) return found;
    throw badFile(module, `'${relative(root, path)}' imports '${specifier}', outside of the folder of transforms`);
  });
}

const isOfFile = (specifier: string): boolean => /^(\.{1,2}(\/|$)|\/|file:|https?:|[a-z]:[\\/])/i.test(specifier);

/** Its real path; undefined if it does not exist. */
function resolveFrom(path: string, specifier: string): string | undefined {
  try {
    return realpathSync(Bun.resolveSync(specifier, dirname(path)));
  } catch {
    return undefined;
  }
}
