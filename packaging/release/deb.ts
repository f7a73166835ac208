/** The Debian package: the program, a service with a user of its own, and scripts that take both away again. */
import { cpSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { entryOf, put, run, type Entry, type Quick } from "./archives.ts";

const ROOT = join(import.meta.dir, "../..");
/** Debian's names of processors. */
const ARCHITECTURES: Readonly<Record<string, string>> = { "linux-x64": "amd64", "linux-arm64": "arm64" };

interface DebOptions extends Quick {
  readonly target: string;
  readonly program: string;
  readonly version: string;
}

/** Undefined for other systems, and where `dpkg-deb` is missing. */
export function makeDeb(out: string, { target, program, version, isQuick }: DebOptions): Entry | undefined {
  const architecture = ARCHITECTURES[target];
  if (architecture === undefined) return undefined;
  if (!Bun.which("dpkg-deb")) {
    console.log(`left out: the .deb for ${target}: dpkg-deb is not installed`);
    return undefined;
  }
  const folder = mkdtempSync(join(tmpdir(), "hearth-deb-"));
  try {
    put(join(folder, "usr/share/doc/hearth/copyright"), readFileSync(join(ROOT, "LICENSE"), "utf8"));
    put(join(folder, "usr/lib/systemd/system/hearth.service"), unit());
    cpSync(program, join(folder, "usr/bin/hearth"));
    const installed = Math.ceil(statSync(program).size / 1024);
    put(join(folder, "DEBIAN/control"), control({ version, architecture, installed }));
    for (const name of ["postinst", "prerm", "postrm"])
      put(join(folder, "DEBIAN", name), readFileSync(join(ROOT, "packaging/debian", name), "utf8"), 0o755);
    const path = join(out, `hearth_${debianVersion(version)}_${architecture}.deb`);
    const level = isQuick ? ["-Znone"] : ["-Zxz", "-z6"];
    run(["dpkg-deb", "--root-owner-group", ...level, "--build", folder, path]);
    return entryOf(path, "deb", target);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Debian sorts `~` before everything: a release candidate comes before its release. */
const debianVersion = (version: string): string => version.replace("-", "~");

/** The unit, for the program's place in a package. */
const unit = (): string =>
  readFileSync(join(ROOT, "packaging/hearth.service"), "utf8")
    .replace(/^#.*\n/, "")
    .replace("/usr/local/bin/hearth", "/usr/bin/hearth");

const control = (about: { version: string; architecture: string; installed: number }): string =>
  `Package: hearth
Version: ${debianVersion(about.version)}
Architecture: ${about.architecture}
Maintainer: Hearth developers <hearth@localhost>
Installed-Size: ${about.installed}
Depends: libc6 (>= 2.17), adduser
Recommends: ca-certificates
Suggests: libvulkan1
Section: net
Priority: optional
Description: server for language models
 Runs language models on this machine and serves them over HTTP, in the
 dialects of Ollama, OpenAI and Anthropic.
`;
