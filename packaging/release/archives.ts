/** The archives of a release. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { zipSync } from "fflate";
import { storedXz } from "./stored-xz.ts";

/** A file of a release. */
export interface Entry {
  /** `program` and `gpu` are packed files for `hearth update`; the others are what people and package managers get. */
  readonly kind: "program" | "gpu" | "archive" | "deb";
  readonly target: string;
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly unpackedBytes?: number;
  readonly unpackedSha256?: string;
  readonly version?: string;
}

export interface Quick {
  /** True: compresses little or not at all, for tests. */
  readonly isQuick: boolean;
}

const sha256 = (bytes: Uint8Array): string => new Bun.CryptoHasher("sha256").update(bytes).digest("hex");

/** The entry of a file in a release's folder. */
export function entryOf(path: string, kind: Entry["kind"], target: string): Entry {
  const bytes = readFileSync(path);
  return { kind, target, file: basename(path), bytes: bytes.length, sha256: sha256(bytes) };
}

/** Compresses bytes into a file. A window of 8 MB, which every decoder takes. */
export function packedEntry(
  out: string,
  file: string,
  content: Uint8Array,
  { isQuick, ...about }: Quick & Pick<Entry, "kind" | "target" | "version">,
): Entry {
  const packed = Bun.zstdCompressSync(content, { level: isQuick ? 1 : 19 });
  writeFileSync(join(out, file), packed);
  const unpacked = { unpackedBytes: content.length, unpackedSha256: sha256(content) };
  return { ...about, file, bytes: packed.length, sha256: sha256(packed), ...unpacked };
}

/** Runs a program. Throws with its output if it fails. */
export function run(command: readonly string[], options: { cwd?: string; env?: Record<string, string> } = {}): void {
  const done = Bun.spawnSync([...command], { ...options, env: { ...process.env, ...options.env }, stderr: "pipe" });
  if (!done.success) throw new Error(`${command[0]}: ${done.stderr.toString().trim() || `exit code ${done.exitCode}`}`);
}

/** An archive of files without folders; the first is the program. */
export function tarXz(path: string, files: readonly string[], { isQuick }: Quick): void {
  const folder = mkdtempSync(join(tmpdir(), "hearth-archive-"));
  try {
    for (const file of files) cpSync(file, join(folder, basename(file)));
    const names = files.map((file) => basename(file));
    // Homebrew, the shell and Debian read xz, which is a seventh smaller than gzip
    const owner = ["--owner=0", "--group=0", "--numeric-owner", "--mtime=2020-01-01", "--mode=u+w,go-w"];
    const tar = join(folder, "made.tar");
    if (!isQuick) return run(["tar", ...owner, "-cJf", path, ...names], { cwd: folder, env: { XZ_OPT: "-6 -T0" } });
    run(["tar", ...owner, "-cf", tar, ...names], { cwd: folder });
    writeFileSync(path, storedXz(readFileSync(tar)));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export function zip(path: string, files: readonly string[], { isQuick }: Quick): void {
  const content = Object.fromEntries(files.map((file) => [basename(file), new Uint8Array(readFileSync(file))]));
  writeFileSync(path, zipSync(content, { level: isQuick ? 1 : 9, mtime: "2020-01-01" }));
}

/** Writes a text file, with its folders. */
export function put(path: string, text: string, mode = 0o644): void {
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, text, { mode });
}
