/** The manifests of Homebrew, scoop and winget. */
import type { Entry } from "./archives.ts";

export interface Release {
  readonly version: string;
  /** The address of the newest release. */
  readonly url: string;
  /** The address where the files of this release stay. */
  readonly filesUrl: string;
  readonly entries: readonly Entry[];
}

const ABOUT = "Runs language models on the machine it is started on and serves them over HTTP";

/** The archive of a target. Throws if the release has none. */
export function archiveFor({ entries }: Release, target: string): Entry {
  const found = entries.find((entry) => entry.kind === "archive" && entry.target === target);
  if (!found) throw new Error(`the release has no archive for ${target}`);
  return found;
}

/** The texts by name. A manager whose systems this release lacks gets none. */
export function manifestsFor(release: Release): Record<string, string> {
  const has = new Set(release.entries.map(({ target }) => target));
  const isFor = (...targets: string[]): string[] => targets.filter((target) => has.has(target));
  const forBrew = isFor("darwin-arm64", "linux-x64", "linux-arm64");
  const forWindows = isFor("windows-x64", "windows-arm64");
  return {
    ...(forBrew.length > 0 && { "hearth.rb": formula(release, forBrew) }),
    ...(forWindows.length > 0 && { "hearth.json": scoop(release, forWindows), ...winget(release, forWindows) }),
  };
}

/** Homebrew's words for a target: its system and processor. */
const BREW: Readonly<Record<string, readonly [system: string, processor: string]>> = {
  "darwin-arm64": ["on_macos", "on_arm"],
  "linux-x64": ["on_linux", "on_intel"],
  "linux-arm64": ["on_linux", "on_arm"],
};

function formula(release: Release, targets: readonly string[]): string {
  const blocks = targets.map((target) => {
    const { file, sha256 } = archiveFor(release, target);
    const [system, processor] = BREW[target]!;
    return `  ${system} do
    ${processor} do
      url "${release.filesUrl}/${file}"
      sha256 "${sha256}"
    end
  end
`;
  });
  return `class Hearth < Formula
  desc "Runs language models on this machine and serves them over HTTP"
  homepage "${release.url}"
  version "${release.version}"
  license "MIT"

${blocks.join("\n")}
  def install
    bin.install "hearth"
    generate_completions_from_executable(bin/"hearth", "completion", shells: [:bash, :zsh, :fish])
  end

  service do
    run [opt_bin/"hearth", "serve"]
    keep_alive crashed: true
    log_path var/"log/hearth.log"
    error_log_path var/"log/hearth.log"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/hearth --version")
  end
end
`;
}

const SCOOP: Readonly<Record<string, string>> = { "windows-x64": "64bit", "windows-arm64": "arm64" };

function scoop(release: Release, targets: readonly string[]): string {
  const architecture = Object.fromEntries(
    targets.map((target) => {
      const { file, sha256 } = archiveFor(release, target);
      return [SCOOP[target]!, { url: `${release.filesUrl}/${file}`, hash: sha256 }];
    }),
  );
  const { version, url } = release;
  const manifest = { version, description: ABOUT, homepage: url, license: "MIT", architecture, bin: "hearth.exe" };
  return `${JSON.stringify(manifest, undefined, 4)}\n`;
}

const WINGET_SCHEMA = "1.6.0";
const WINGET_ID = "Hearth.Hearth";
const WINGET: Readonly<Record<string, string>> = { "windows-x64": "x64", "windows-arm64": "arm64" };

function winget(release: Release, targets: readonly string[]): Record<string, string> {
  const manifest = (kind: string, body: string): string =>
    `# yaml-language-server: $schema=https://aka.ms/winget-manifest.${kind}.${WINGET_SCHEMA}.schema.json
PackageIdentifier: ${WINGET_ID}
PackageVersion: ${release.version}
${body}ManifestType: ${kind}
ManifestVersion: ${WINGET_SCHEMA}
`;
  const installers = targets.map((target) => {
    const { file, sha256 } = archiveFor(release, target);
    return `  - Architecture: ${WINGET[target]}
    InstallerUrl: ${release.filesUrl}/${file}
    InstallerSha256: ${sha256.toUpperCase()}
`;
  });
  return {
    [`${WINGET_ID}.yaml`]: manifest("version", "DefaultLocale: en-US\n"),
    [`${WINGET_ID}.installer.yaml`]: manifest(
      "installer",
      `InstallerType: zip
NestedInstallerType: portable
NestedInstallerFiles:
  - RelativeFilePath: hearth.exe
    PortableCommandAlias: hearth
Installers:
${installers.join("")}`,
    ),
    [`${WINGET_ID}.locale.en-US.yaml`]: manifest(
      "defaultLocale",
      `PackageLocale: en-US
Publisher: Hearth developers
PackageName: Hearth
License: MIT
ShortDescription: ${ABOUT}
`,
    ),
  };
}
