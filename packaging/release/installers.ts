/** The installers of a release: `packaging/install.sh` and `install.ps1` with address, version and digests filled in. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { archiveFor, type Release } from "./manifests.ts";

const PACKAGING = join(import.meta.dir, "..");

/** The texts by name. */
export function installers(release: Release): Record<string, string> {
  const { version, filesUrl, entries } = release;
  const archives = [...new Set(entries.map(({ target }) => target))].map((target) => archiveFor(release, target));
  const isWindows = (target: string): boolean => target.startsWith("windows");
  const lines = archives.filter(({ target }) => !isWindows(target)).map(({ target, sha256 }) => `${target} ${sha256}`);
  const rows = archives
    .filter(({ target }) => isWindows(target))
    .map(({ target, sha256 }) => `'${target}' = '${sha256}'`);
  return {
    "install.sh": filled("install.sh", [
      ["release_url=''", `release_url='${filesUrl}'`],
      ["release_version=''", `release_version='${version}'`],
      ["release_digests=''", `release_digests='${lines.join("\n")}'`],
    ]),
    "install.ps1": filled("install.ps1", [
      ["$releaseUrl = ''", `$releaseUrl = '${filesUrl}'`],
      ["$releaseVersion = ''", `$releaseVersion = '${version}'`],
      ["$releaseDigests = @{}", `$releaseDigests = @{ ${rows.join("; ")} }`],
    ]),
  };
}

function filled(name: string, places: readonly (readonly [empty: string, full: string])[]): string {
  let text = readFileSync(join(PACKAGING, name), "utf8");
  for (const [empty, full] of places) {
    if (!text.includes(`${empty}\n`)) throw new Error(`${name}: expected a line ${empty}`);
    text = text.replace(empty, () => full);
  }
  return text;
}
