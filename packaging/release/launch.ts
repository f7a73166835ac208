/**
 * The command of the npm package, run by Node: unpacks the program of this system at the first start, then runs it.
 * The program lies packed in its package, since npm's own compression would make it a fifth larger.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import * as zlib from "node:zlib";
import { decompress } from "fzstd";

const NAME = "hearth-llm";
const SYSTEMS: Readonly<Record<string, string>> = { linux: "linux", darwin: "darwin", win32: "windows" };

interface Package {
  readonly version: string;
  readonly hearth: { readonly packed: string; readonly sha256: string };
}

function fail(message: string): never {
  console.error(`hearth: ${message}`);
  process.exit(1);
}

/** The folder of the package with this system's program. */
function packageFolder(): string {
  const { platform, arch } = process;
  const report = process.report?.getReport() as { header?: { glibcVersionRuntime?: string } } | undefined;
  const libc = platform === "linux" && !report?.header?.glibcVersionRuntime ? "-musl" : "";
  const name = `${NAME}-${SYSTEMS[platform] ?? platform}-${arch}${libc}`;
  try {
    return dirname(require.resolve(`${name}/package.json`));
  } catch {
    return fail(
      `the package ${name} is not installed: it is missing for this system, or npm left optional packages out`,
    );
  }
}

/** The program's path. It appears whole: two first starts may unpack at once. */
function unpacked(): string {
  const folder = packageFolder();
  const { version, hearth } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Package;
  const name = process.platform === "win32" ? "hearth.exe" : "hearth";
  // a package that root installed is not writable; the second place is the user's own
  const places = [folder, join(homedir(), ".cache", "hearth", `npm-${version}`)];
  const found = places.map((place) => join(place, name)).find((path) => existsSync(path));
  if (found !== undefined) return found;
  const packed = readFileSync(join(folder, hearth.packed));
  const program = zlib.zstdDecompressSync ? zlib.zstdDecompressSync(packed) : decompress(packed);
  const sha256 = createHash("sha256").update(program).digest("hex");
  if (sha256 !== hearth.sha256) fail(`${join(folder, hearth.packed)} is damaged: install the package again`);
  const problems: string[] = [];
  for (const place of places) {
    const partial = join(place, `.${name}-${process.pid}`);
    try {
      mkdirSync(place, { recursive: true, mode: 0o700 });
      writeFileSync(partial, program, { mode: 0o755 });
      renameSync(partial, join(place, name));
      return join(place, name);
    } catch (error) {
      rmSync(partial, { force: true });
      problems.push((error as Error).message);
    }
  }
  return fail(`the program cannot be unpacked: ${problems.join("; ")}`);
}

const program = unpacked();
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => child.kill(signal));
child.on("error", (error) => fail(`cannot run ${program}: ${error.message}`));
child.on("exit", (code, signal) => process.exit(signal ? 1 : (code ?? 1)));
