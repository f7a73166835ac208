/**
 * Disk cache of graphs that ONNX Runtime has optimized and whose weights it has packed for this CPU: a second load maps
 * them instead of packing again. An entry is a folder named after everything that its content depends on; it is created
 * under another name, renamed when complete, and checked before use.
 */
import { closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, readSync, renameSync } from "node:fs";
import { statSync, utimesSync, writeFileSync } from "node:fs";
import { arch, cpus } from "node:os";
import { join } from "node:path";
import { messageOf } from "../../../base/index.ts";
import { removeFolder } from "./folders.ts";
import type { Program } from "../../program/backend.ts";

/** A file named by its content: its modification time is its last use. */
const CONTENT_NAMED = /[\\/]sha256-[0-9a-f]{64}$/;
/** Files of an entry. */
export const MODEL_NAME = "model.onnx";
export const WEIGHTS_NAME = "weights.bin";
const MANIFEST_NAME = "entry.json";
/** Increase it when lowerings or packings change their output. */
const FORMAT = 5;
/** Maximum bytes; the least recently used entries are removed first. */
const CACHE_BYTES_MAX = 32 * 2 ** 30;
/** An incomplete folder older than this belongs to a dead process. */
const UNFINISHED_MS_MAX = 60 * 60 * 1000;
const ENTRY_PREFIX = "onnx-";
const UNFINISHED_PREFIX = "onnx.tmp-";
/** Number of samples of a file: enough to detect truncation, a hole or another file's content, in a millisecond. */
const SAMPLES = 64;
const SAMPLE_BYTES = 4096;

interface Manifest {
  readonly format: number;
  readonly files: Readonly<Record<string, { readonly byteLength: number; readonly hash: string }>>;
}

/** Name of a program's entry; changes with the file, library, CPU, precision or format. */
export function entryName(program: Program, options: { libraryVersion: string; precise: boolean }): string {
  const hash = new Bun.CryptoHasher("sha256");
  hash.update(JSON.stringify([FORMAT, options.libraryVersion, options.precise, arch(), cpuFeatures()]));
  for (const path of [program.weights.path, ...(program.weights.adapters ?? [])]) {
    const { size, mtimeMs } = statSync(path);
    hash.update(JSON.stringify(CONTENT_NAMED.test(path) ? [path, size] : [path, size, mtimeMs]));
  }
  hash.update(JSON.stringify([program.shape, program.steps]));
  return ENTRY_PREFIX + hash.digest("hex").slice(0, 32);
}

/** Path of a complete entry, marked as used now; undefined if there is no entry. Removes a damaged one. */
export function findEntry(cacheDir: string, name: string): string | undefined {
  const folder = join(cacheDir, name);
  try {
    const manifest = JSON.parse(readFileSync(join(folder, MANIFEST_NAME), "utf8")) as Manifest; // ours; checked below
    if (manifest.format !== FORMAT) throw new Error(`format ${manifest.format}, expected ${FORMAT}`);
    for (const file of [MODEL_NAME, WEIGHTS_NAME]) checkFile(join(folder, file), manifest.files[file]);
    utimesSync(folder, new Date(), new Date());
    return folder;
  } catch {
    removeFolder(folder);
    return undefined;
  }
}

/**
 * Creates an entry: `build` writes its files into a new folder. If another process does the same meanwhile, the first
 * to finish wins, and both get its folder.
 */
export function makeEntry(cacheDir: string, name: string, build: (folder: string) => void): string {
  mkdirSync(cacheDir, { recursive: true });
  const unfinished = mkdtempSync(join(cacheDir, UNFINISHED_PREFIX));
  const folder = join(cacheDir, name);
  try {
    build(unfinished);
    const files = Object.fromEntries(
      [MODEL_NAME, WEIGHTS_NAME].map((file) => [file, describeFile(join(unfinished, file))]),
    );
    writeFileSync(join(unfinished, MANIFEST_NAME), JSON.stringify({ format: FORMAT, files } satisfies Manifest));
    renameSync(unfinished, folder);
  } catch (error) {
    removeFolder(unfinished);
    if (!findEntry(cacheDir, name)) throw error;
  }
  return folder;
}

/** Removes folders of dead processes, and the least recently used entries beyond `bytesMax`, but never `keep`. */
export function pruneEntries(cacheDir: string, keep: string, bytesMax = CACHE_BYTES_MAX): void {
  const entries: { path: string; usedAtMs: number; byteLength: number }[] = [];
  for (const name of readdirSync(cacheDir)) {
    const path = join(cacheDir, name);
    try {
      const usedAtMs = statSync(path).mtimeMs;
      if (name.startsWith(UNFINISHED_PREFIX) && Date.now() - usedAtMs > UNFINISHED_MS_MAX) {
        removeFolder(path);
      } else if (name.startsWith(ENTRY_PREFIX)) entries.push({ path, usedAtMs, byteLength: folderBytes(path) });
    } catch {
      continue; // removed meanwhile by another process
    }
  }
  let total = entries.reduce((sum, { byteLength }) => sum + byteLength, 0);
  for (const { path, byteLength } of entries.toSorted((a, b) => a.usedAtMs - b.usedAtMs)) {
    if (total <= bytesMax) return;
    if (path === join(cacheDir, keep)) continue;
    removeFolder(path); // a process that has it mapped keeps its pages
    total -= byteLength;
  }
}

function folderBytes(folder: string): number {
  return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).blocks * 512, 0);
}

function checkFile(path: string, expected: Manifest["files"][string] | undefined): void {
  const found = describeFile(path);
  if (Bun.deepEquals(found, expected)) return;
  throw new Error(`${path}: expected ${JSON.stringify(expected)}, found ${JSON.stringify(found)}`);
}

/** Size and a hash of pages sampled over the file. */
function describeFile(path: string): Manifest["files"][string] {
  const file = openSync(path, "r");
  try {
    const byteLength = statSync(path).size;
    const hash = new Bun.CryptoHasher("sha256");
    const page = new Uint8Array(SAMPLE_BYTES);
    const step = Math.max(SAMPLE_BYTES, Math.floor(byteLength / SAMPLES));
    for (let at = 0; at < byteLength; at += step)
      hash.update(page.subarray(0, readSync(file, page, 0, SAMPLE_BYTES, at)));
    return { byteLength, hash: hash.digest("hex") };
  } finally {
    closeSync(file);
  }
}

/** The CPU features that determine the library's choice of kernels, and so of packing. */
function cpuFeatures(): string {
  try {
    const flags = /^(flags|Features)\s*:.*$/m.exec(readFileSync("/proc/cpuinfo", "utf8"));
    if (flags) return flags[0];
  } catch (error) {
    if (process.platform === "linux") return messageOf(error);
  }
  return cpus()[0]?.model ?? "";
}
