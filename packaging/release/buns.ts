/** Bun for other systems, from npm's packages. */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { run } from "./archives.ts";

/** Names of Bun's packages. */
const PACKAGES: Readonly<Record<string, string>> = {
  "linux-x64": "bun-linux-x64",
  "linux-arm64": "bun-linux-aarch64",
  "linux-x64-musl": "bun-linux-x64-musl",
  "linux-arm64-musl": "bun-linux-aarch64-musl",
  "darwin-arm64": "bun-darwin-aarch64",
  "windows-x64": "bun-windows-x64",
  "windows-arm64": "bun-windows-aarch64",
};

/**
 * The path of a target's Bun, or the reason why it cannot be had.
 * @param folder unpacked packages; undefined: fetched into the user's cache
 */
export function bunFor(target: string, folder: string | undefined): { path: string } | { reason: string } {
  const name = PACKAGES[target];
  if (name === undefined) return { reason: `expected one of ${Object.keys(PACKAGES).join(", ")}` };
  const program = join("package/bin", target.startsWith("windows") ? "bun.exe" : "bun");
  const places = folder ?? join(homedir(), ".cache/hearth/buns", Bun.version);
  const path = join(places, name, program);
  if (existsSync(path)) return { path };
  if (folder !== undefined) return { reason: `'${path}' does not exist` };
  mkdirSync(places, { recursive: true });
  const scratch = mkdtempSync(join(places, "fetching-"));
  try {
    run(["npm", "pack", "--silent", `@oven/${name}@${Bun.version}`], { cwd: scratch });
    run(["tar", "xzf", `oven-${name}-${Bun.version}.tgz`], { cwd: scratch });
    renameSync(scratch, join(places, name));
    return { path };
  } catch (error) {
    return { reason: `Bun ${Bun.version} cannot be had: ${(error as Error).message.split("\n")[0]}` };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
