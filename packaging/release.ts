#!/usr/bin/env bun
/**
 * Makes a release: a folder with all that people and package managers download.
 *
 *   bun packaging/release.ts --out FOLDER --url URL [--files-url URL] [--key FILE] [--targets linux-x64,…]
 *     [--buns FOLDER] [--quick]
 *   bun packaging/release.ts --new-key FILE
 *
 * `--url` is where `hearth update` finds the newest release, `--files-url` where the files of this one stay; both are
 * the same if only one is given. `--key` is a secret key of minisign without a password, which `--new-key` makes;
 * without it the folder is not signed, and `hearth update` refuses it. Bun for other systems comes from npm, or from
 * `--buns`, a folder of unpacked packages; a target whose Bun cannot be had is left out by name, unless it was asked
 * for. `--quick` compresses little: for tests.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { VERSION } from "../src/base/version.ts";
import { compile, dawnPaths, dawnVersion, pathsOf, TARGETS } from "./compile.ts";
import { entryOf, packedEntry, tarXz, zip, type Entry } from "./release/archives.ts";
import { makeDeb } from "./release/deb.ts";
import { bunFor } from "./release/buns.ts";
import { installers } from "./release/installers.ts";
import { manifestsFor, type Release } from "./release/manifests.ts";
import { makeNpmPackages } from "./release/npm.ts";
import { newKey, publicKeyOf, sign } from "./release/sign.ts";

const ROOT = join(import.meta.dir, "..");

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      out: { type: "string" },
      url: { type: "string" },
      "files-url": { type: "string" },
      key: { type: "string" },
      targets: { type: "string" },
      buns: { type: "string" },
      quick: { type: "boolean", default: false },
      "new-key": { type: "string" },
    },
  });
  if (values["new-key"] !== undefined) return writeNewKey(values["new-key"]);
  const { out, url, key } = values;
  if (out === undefined || url === undefined) throw new Error("expected --out FOLDER and --url URL");
  await makeRelease({
    out: resolve(out),
    url,
    filesUrl: values["files-url"] ?? url,
    secret: key === undefined ? undefined : readFileSync(key, "utf8"),
    targets: values.targets?.split(","),
    buns: values.buns,
    isQuick: values.quick,
  });
}

async function writeNewKey(path: string): Promise<void> {
  const { secret, publicKey } = await newKey();
  writeFileSync(path, secret, { flag: "wx", mode: 0o600 });
  console.log(`${path}: keep it secret. The public key: ${publicKey}`);
}

interface ReleaseOptions {
  /** A folder that does not exist, or is empty. */
  readonly out: string;
  readonly url: string;
  readonly filesUrl: string;
  readonly secret: string | undefined;
  /** Undefined: all. */
  readonly targets: readonly string[] | undefined;
  readonly buns: string | undefined;
  readonly isQuick: boolean;
}

async function makeRelease(options: ReleaseOptions): Promise<void> {
  const { out, targets = Object.keys(TARGETS), secret } = options;
  mkdirSync(out, { recursive: true });
  const scratch = join(tmpdir(), `hearth-release-${crypto.randomUUID()}`);
  try {
    const entries: Entry[] = [];
    const left: string[] = [];
    for (const target of targets) {
      const made = await makeTarget(target, scratch, options);
      if (typeof made === "string") left.push(`${target}: ${made}`);
      else entries.push(...made);
    }
    if (left.length > 0 && options.targets) throw new Error(`not made: ${left.join("; ")}`);
    for (const line of left) console.log(`left out: ${line}`);
    const release: Release = { version: VERSION, url: options.url, filesUrl: options.filesUrl, entries };
    await makeNpmPackages(out, release);
    for (const [name, text] of Object.entries({ ...manifestsFor(release), ...installers(release) }))
      writeFileSync(join(out, name), text, { mode: name.endsWith(".sh") ? 0o755 : 0o644 });
    await writeLists(out, release, secret);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Makes all files of a target. Returns their entries, or the reason for leaving the target out. */
async function makeTarget(target: string, scratch: string, options: ReleaseOptions): Promise<Entry[] | string> {
  const { out, url, secret, isQuick, buns } = options;
  const bun = bunFor(target, buns);
  if ("reason" in bun) return bun.reason;
  const folder = join(scratch, target);
  const release = { url, ...(secret !== undefined && { key: publicKeyOf(secret) }) };
  const isWindows = target.startsWith("windows");
  const path = join(folder, isWindows ? "hearth.exe" : "hearth");
  await compile({ target, out: path, level: isQuick ? 3 : 19, bun: bun.path, without: ["onnx", "gpu"], release });
  const beside = [
    join(ROOT, "LICENSE"),
    ...(target.startsWith("linux") ? [join(ROOT, "packaging/hearth.service")] : []),
  ];
  const name = `hearth-${VERSION}-${target}`;
  const program = packedEntry(out, `${name}.zst`, readFileSync(path), { kind: "program", target, isQuick });
  const archive = join(out, `${name}.${isWindows ? "zip" : "tar.xz"}`);
  (isWindows ? zip : tarXz)(archive, [path, ...beside], { isQuick });
  const deb = makeDeb(out, { target, program: path, version: VERSION, isQuick });
  const gpu = await gpuEntry(out, target, isQuick);
  const mine = [program, entryOf(archive, "archive", target), deb, gpu].filter((entry) => entry !== undefined);
  for (const entry of mine) console.log(`${entry.file}: ${(entry.bytes / 1e6).toFixed(1)} MB`);
  return mine;
}

/** The GPU library, which `hearth update --gpu` fetches. */
async function gpuEntry(out: string, target: string, isQuick: boolean): Promise<Entry | undefined> {
  const { dawn } = TARGETS[target]!;
  if (dawn === undefined) return undefined;
  const prefix = "node_modules/webgpu/";
  const paths = await pathsOf(dawnPaths(dawn));
  const files = Object.fromEntries(paths.map((path) => [path.slice(prefix.length), readFileSync(join(ROOT, path))]));
  const tar = await new Bun.Archive(files).bytes();
  const version = dawnVersion();
  return packedEntry(out, `webgpu-${version}-${target}.tar.zst`, tar, { kind: "gpu", target, version, isQuick });
}

/** `release.json` for `hearth update`, and the digests of all files, for users who check them. */
async function writeLists(out: string, { version, entries }: Release, secret: string | undefined): Promise<void> {
  const files = entries.filter(({ kind }) => kind === "program" || kind === "gpu");
  writeFileSync(join(out, "release.json"), `${JSON.stringify({ version, files }, undefined, 2)}\n`);
  const lists = ["release.json", "SHA256SUMS"];
  const paths = await Array.fromAsync(new Bun.Glob("**/*").scan({ cwd: out }));
  const names = paths
    .map((path) => path.replaceAll("\\", "/"))
    .filter((name) => !lists.some((list) => name.startsWith(list)));
  const digestOf = (name: string): string =>
    new Bun.CryptoHasher("sha256").update(readFileSync(join(out, name))).digest("hex");
  const sums = ["release.json", ...names.toSorted()].map((name) => `${digestOf(name)}  ${name}\n`);
  writeFileSync(join(out, "SHA256SUMS"), sums.join(""));
  if (secret === undefined) return console.log("not signed: no --key");
  for (const list of lists) {
    const signature = await sign(
      readFileSync(join(out, list)),
      secret,
      `hearth ${version}, ${new Date().toISOString()}`,
    );
    writeFileSync(join(out, `${list}.minisig`), signature);
  }
}

await main();
