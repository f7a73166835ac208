/** `packaging/install.sh` on machines of other kinds. A shell script stands for the program of the release. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

setDefaultTimeout(60_000);

const SCRIPT = resolve(import.meta.dir, "../../packaging/install.sh");
const TARGETS = ["linux-x64", "linux-x64-musl", "linux-arm64", "linux-arm64-musl"];
const canRun = process.platform === "linux" && Bun.which("xz") !== null && Bun.which("curl") !== null;

let folder = "";
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "hearth install-"))));
afterEach(() => rmSync(folder, { recursive: true }));

function writeScript(path: string, text: string): void {
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o755);
}

/** Runs the installer of a release, whose archives have one program for every target. */
function install(program: string, args: readonly string[], tools: Record<string, string> = {}) {
  const [release, bin, temporary] = ["release", "tools", "temporary"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  for (const each of [release, bin, temporary]) mkdirSync(each);
  writeScript(join(release, "hearth"), program);
  for (const [name, text] of Object.entries(tools)) writeScript(join(bin, name), text);
  const packed = join(release, `hearth-1-${TARGETS[0]}.tar.xz`);
  Bun.spawnSync(["tar", "-cJf", packed, "-C", release, "hearth"]);
  const sha256 = new Bun.CryptoHasher("sha256").update(readFileSync(packed)).digest("hex");
  for (const target of TARGETS.slice(1))
    writeFileSync(join(release, `hearth-1-${target}.tar.xz`), readFileSync(packed));
  const text = readFileSync(SCRIPT, "utf8")
    .replace("release_version=''", "release_version='1'")
    .replace("release_digests=''", `release_digests='${TARGETS.map((target) => `${target} ${sha256}`).join("\n")}'`);
  writeFileSync(join(release, "install.sh"), text);
  const { exitCode, stdout, stderr } = Bun.spawnSync(["sh", join(release, "install.sh"), "--no-gpu", ...args], {
    env: {
      HOME: join(folder, "home"),
      PATH: `${bin}:${process.env["PATH"]!}`,
      TMPDIR: temporary,
      HEARTH_RELEASE_URL: `file://${encodeURI(release)}`,
    },
  });
  return { code: exitCode, out: stdout.toString() + stderr.toString() };
}

test.skipIf(!canRun)("a temporary folder that runs no program is enough", () => {
  const prefix = join(folder, "größe & co");
  const program = "case $0 in */temporary/*) exit 126 ;; esac\necho hearth 1";
  expect(install(program, ["--prefix", prefix])).toMatchObject({
    code: 0,
    out: expect.stringContaining("installed hearth 1"),
  });
  expect(Bun.spawnSync([join(prefix, "bin/hearth")]).stdout.toString()).toBe("hearth 1\n");
});

test.skipIf(!canRun)("a program that does not run leaves the one before", () => {
  const bin = join(folder, "prefix/bin");
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(bin, "hearth"), "before");
  const { code, out } = install("exit 1", ["--prefix", join(folder, "prefix")]);
  expect([code, out]).toEqual([1, expect.stringContaining("does not run on this machine")]);
  expect(readFileSync(join(bin, "hearth"), "utf8")).toBe("before");
  expect(existsSync(join(bin, ".hearth.new"))).toBe(false);
});

test.skipIf(!canRun)("a folder that cannot be written is named before anything is downloaded", () => {
  const { code, out } = install("", ["--prefix", "/proc/hearth"]);
  expect([code, out]).toEqual([1, expect.stringContaining("cannot write to /proc/hearth/bin: --prefix DIR")]);
  expect(out).not.toContain("downloading");
});

test.skipIf(!canRun)("the C library of ldd chooses the program, also beside the loader of another one", () => {
  const prefix = ["--prefix", join(folder, "prefix")];
  const musl = "echo 'musl libc (x86_64)' >&2; exit 1";
  expect(install("echo hearth 1", prefix, { ldd: musl }).out).toMatch(
    /^downloading hearth-1-linux-\w+-musl\.tar\.xz$/m,
  );
});
