/**
 * The npm packages: a small one with the command, and one for each system with the program, packed; npm installs the
 * one that fits. The name `hearth` belongs to another package.
 */
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { put, run, type Entry } from "./archives.ts";
import type { Release } from "./manifests.ts";

const ROOT = join(import.meta.dir, "../..");
const NAME = "hearth-llm";

/** npm's words for a target. */
const SYSTEMS: Readonly<Record<string, object>> = {
  "linux-x64": { os: ["linux"], cpu: ["x64"], libc: ["glibc"] },
  "linux-arm64": { os: ["linux"], cpu: ["arm64"], libc: ["glibc"] },
  "linux-x64-musl": { os: ["linux"], cpu: ["x64"], libc: ["musl"] },
  "linux-arm64-musl": { os: ["linux"], cpu: ["arm64"], libc: ["musl"] },
  "darwin-arm64": { os: ["darwin"], cpu: ["arm64"] },
  "windows-x64": { os: ["win32"], cpu: ["x64"] },
  "windows-arm64": { os: ["win32"], cpu: ["arm64"] },
};

/** Writes the packages as npm packs them, into the folder `npm` of the release. */
export async function makeNpmPackages(out: string, { version, entries, url }: Release): Promise<void> {
  const programs = entries.filter(({ kind }) => kind === "program");
  const common = { version, license: "MIT", homepage: url };
  for (const entry of programs) packProgram(out, entry, common);
  const packages = programs.map(({ target }) => [`${NAME}-${target}`, version]);
  packFolder(out, NAME, {
    "package.json": `${JSON.stringify(
      {
        name: NAME,
        ...common,
        description: "Runs language models on the machine it is started on and serves them over HTTP",
        bin: { hearth: "launch.cjs", [NAME]: "launch.cjs" },
        engines: { node: ">=20" },
        optionalDependencies: Object.fromEntries(packages),
      },
      undefined,
      2,
    )}\n`,
    "README.md": readme,
    "launch.cjs": await launcher(),
    LICENSE: readFileSync(join(ROOT, "LICENSE"), "utf8"),
  });
}

const readme = `# Hearth

Runs language models on your own machine and serves them over HTTP, in the dialects of Ollama, OpenAI and Anthropic.

    npx ${NAME} serve
    npx ${NAME} run hearth "Hello"
`;

function packProgram(out: string, { target, file, unpackedSha256 }: Entry, common: object): void {
  const manifest = {
    name: `${NAME}-${target}`,
    ...common,
    description: `The program of ${NAME} for ${target}`,
    ...SYSTEMS[target],
    hearth: { packed: file, sha256: unpackedSha256 },
  };
  const files = {
    "package.json": `${JSON.stringify(manifest, undefined, 2)}\n`,
    LICENSE: readFileSync(join(ROOT, "LICENSE"), "utf8"),
  };
  packFolder(out, manifest.name, files, (folder) => copyFileSync(join(out, file), join(folder, file)));
}

function packFolder(
  out: string,
  name: string,
  files: Readonly<Record<string, string>>,
  more: (folder: string) => void = () => {},
): void {
  const folder = mkdtempSync(join(tmpdir(), "hearth-npm-"));
  try {
    for (const [path, text] of Object.entries(files))
      put(join(folder, path), text, path === "launch.cjs" ? 0o755 : 0o644);
    more(folder);
    put(join(out, "npm/.made"), "");
    run([process.execPath, "pm", "pack", "--quiet", "--gzip-level", "0", "--destination", join(out, "npm")], {
      cwd: folder,
    });
  } finally {
    rmSync(folder, { recursive: true });
    rmSync(join(out, "npm/.made"), { force: true });
  }
}

/** The launcher with its library, in one file for Node. */
async function launcher(): Promise<string> {
  const built = await Bun.build({ entrypoints: [join(import.meta.dir, "launch.ts")], target: "node", format: "cjs" });
  if (!built.success) throw new Error(built.logs.join("\n"));
  const text = await built.outputs[0]!.text();
  return text.startsWith("#!") ? text : `#!/usr/bin/env node\n${text}`;
}
