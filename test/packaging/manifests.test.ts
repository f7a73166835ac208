/** The manifests, parsed as package managers do, and compared with the release's files. */
import { expect, test } from "bun:test";
import type { Entry } from "../../packaging/release/archives.ts";
import { installers } from "../../packaging/release/installers.ts";
import { manifestsFor, type Release } from "../../packaging/release/manifests.ts";

const digit = (n: number): string => `a${n}`.repeat(32);
const archive = (target: string, n: number): Entry => {
  const file = `hearth-1.2.3-${target}.${target.startsWith("windows") ? "zip" : "tar.xz"}`;
  return { kind: "archive", target, file, bytes: 1, sha256: digit(n) };
};
const TARGETS = ["linux-x64", "linux-arm64", "linux-x64-musl", "darwin-arm64", "windows-x64", "windows-arm64"];
const release: Release = {
  version: "1.2.3",
  url: "https://example.org/latest",
  filesUrl: "https://example.org/1.2.3",
  entries: TARGETS.map((target, n) => archive(target, n + 1)),
};
const texts = manifestsFor(release);
const addressOf = (target: string): string => `https://example.org/1.2.3/${archive(target, 0).file}`;

test("Homebrew: each block has the address and the digest of its system", () => {
  const formula = texts["hearth.rb"]!;
  const block = /(on_\w+) do\n\s+(on_\w+) do\n\s+url "(\S+)"\n\s+sha256 "(\w+)"/g;
  expect([...formula.matchAll(block)].map((match) => match.slice(1))).toEqual([
    ["on_macos", "on_arm", addressOf("darwin-arm64"), digit(4)],
    ["on_linux", "on_intel", addressOf("linux-x64"), digit(1)],
    ["on_linux", "on_arm", addressOf("linux-arm64"), digit(2)],
  ]);
  const opened = formula.match(/\b(do|def|class)\b(?! ")/g)!.length;
  expect(formula.match(/^\s*end$/gm)).toHaveLength(opened);
});

test.skipIf(!Bun.which("ruby"))("Homebrew: Ruby parses the formula", () => {
  expect(Bun.spawnSync(["ruby", "-c"], { stdin: Buffer.from(texts["hearth.rb"]!) }).stdout.toString()).toContain("OK");
});

test("scoop: the manifest has the address and the digest of each architecture", () => {
  expect(JSON.parse(texts["hearth.json"]!)).toEqual({
    version: "1.2.3",
    description: expect.any(String),
    homepage: "https://example.org/latest",
    license: "MIT",
    architecture: {
      "64bit": { url: addressOf("windows-x64"), hash: digit(5) },
      arm64: { url: addressOf("windows-arm64"), hash: digit(6) },
    },
    bin: "hearth.exe",
  });
});

test("winget: the three files have the fields of their schema", () => {
  const [version, installer, locale] = ["", ".installer", ".locale.en-US"].map(
    (part) => Bun.YAML.parse(texts[`Hearth.Hearth${part}.yaml`]!) as Record<string, unknown>,
  );
  const common = { PackageIdentifier: "Hearth.Hearth", PackageVersion: "1.2.3", ManifestVersion: "1.6.0" };
  expect(version).toEqual({ ...common, DefaultLocale: "en-US", ManifestType: "version" });
  expect(locale).toEqual({
    ...common,
    PackageLocale: "en-US",
    Publisher: expect.any(String),
    PackageName: "Hearth",
    License: "MIT",
    ShortDescription: expect.stringMatching(/^.{3,256}$/),
    ManifestType: "defaultLocale",
  });
  expect(installer).toEqual({
    ...common,
    InstallerType: "zip",
    NestedInstallerType: "portable",
    NestedInstallerFiles: [{ RelativeFilePath: "hearth.exe", PortableCommandAlias: "hearth" }],
    Installers: [
      { Architecture: "x64", InstallerUrl: addressOf("windows-x64"), InstallerSha256: digit(5) },
      { Architecture: "arm64", InstallerUrl: addressOf("windows-arm64"), InstallerSha256: digit(6) },
    ].map((each) => ({ ...each, InstallerSha256: each.InstallerSha256.toUpperCase() })),
    ManifestType: "installer",
  });
});

test("a package manager gets no manifest if the release lacks its system", () => {
  expect(Object.keys(manifestsFor({ ...release, entries: [archive("linux-x64", 1)] }))).toEqual(["hearth.rb"]);
  expect(Object.keys(manifestsFor({ ...release, entries: [archive("linux-x64-musl", 1)] }))).toEqual([]);
});

test("the installers have the address, the version and the digests", () => {
  const { "install.sh": shell = "", "install.ps1": power = "" } = installers(release);
  expect(shell).toContain("release_url='https://example.org/1.2.3'\nrelease_version='1.2.3'\n");
  const digests = TARGETS.slice(0, 4).map((target, n) => `${target} ${digit(n + 1)}`);
  expect(shell).toContain(`release_digests='${digests.join("\n")}'\n`);
  expect(power).toContain("$releaseUrl = 'https://example.org/1.2.3'");
  expect(power).toContain(`$releaseDigests = @{ 'windows-x64' = '${digit(5)}'; 'windows-arm64' = '${digit(6)}' }`);
  expect(Bun.spawnSync(["sh", "-n"], { stdin: Buffer.from(shell) }).stderr.toString()).toBe("");
});
