/** A release for this machine, made as the real one but packed quickly, and installed in each way from loopback. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { newKey } from "../../packaging/release/sign.ts";
import { VERSION } from "../../src/base/version.ts";
import { drawn } from "../seed.ts";

setDefaultTimeout(240_000); // it compiles, and packs 150 MB several times

const ROOT = resolve(import.meta.dir, "../..");
const SAYS = `hearth ${VERSION} `;
const TARGET = `linux-${process.arch}`;
const NPM = ["hearth-llm", `hearth-llm-${TARGET}`];
const isGlibc = !existsSync(`/lib/ld-musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`);
const canRun = process.platform === "linux" && isGlibc && Bun.which("xz") !== null;

let [folder = "", release = "", url = ""]: string[] = [];
let server: Bun.Server<undefined>;
/** Bytes that the loopback server has sent. */
let sent = 0;

beforeAll(async () => {
  if (!canRun) return;
  folder = mkdtempSync(join(tmpdir(), "hearth-release-test-"));
  release = join(folder, "release");
  server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => answer(new URL(request.url).pathname) });
  url = `http://127.0.0.1:${server.port}`;
  const key = join(folder, "key");
  writeFileSync(key, (await newKey()).secret);
  // Bun's own program is the one of its package
  const bin = join(folder, `buns/bun-${TARGET.replace("arm64", "aarch64")}/package/bin`);
  mkdirSync(bin, { recursive: true });
  symlinkSync(process.execPath, join(bin, "bun"));
  const script = [process.execPath, join(ROOT, "packaging/release.ts"), "--quick", "--targets", TARGET];
  const made = Bun.spawnSync(
    [...script, "--out", release, "--url", url, "--key", key, "--buns", join(folder, "buns")],
    {
      stderr: "inherit",
    },
  );
  expect(made.exitCode).toBe(0);
});
afterAll(async () => {
  if (!canRun) return;
  await server.stop(true);
  rmSync(folder, { recursive: true, force: true });
});

/** The release's files, and npm's documents about its packages. */
async function answer(path: string): Promise<Response> {
  const name = path.slice(1);
  const body = NPM.includes(name)
    ? JSON.stringify(npmDocument(name))
    : await Bun.file(join(release, name))
        .bytes()
        .catch(() => undefined);
  if (body === undefined) return new Response("not here", { status: 404 });
  sent += body.length;
  return new Response(body);
}

function npmDocument(name: string): object {
  const tarball = join(release, "npm", `${name}-${VERSION}.tgz`);
  const packed = Bun.spawnSync(["tar", "xzOf", tarball, "package/package.json"]).stdout.toString();
  const integrity = `sha512-${new Bun.CryptoHasher("sha512").update(readFileSync(tarball)).digest("base64")}`;
  const dist = { tarball: `${url}/npm/${name}-${VERSION}.tgz`, integrity };
  return { name, "dist-tags": { latest: VERSION }, versions: { [VERSION]: { ...JSON.parse(packed), dist } } };
}

/** A separate home folder. */
function makeHome(name: string): string {
  const home = join(folder, name);
  mkdirSync(home);
  return home;
}

interface Ran {
  readonly out: string;
  readonly code: number;
}

/** Runs a command while this process serves the release. */
async function run(command: readonly string[], home: string, more: Record<string, string> = {}): Promise<Ran> {
  const child = Bun.spawn([...command], {
    env: { HOME: home, PATH: process.env["PATH"]!, ...more },
    cwd: home,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, errors] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { out: out + errors, code: await child.exited };
}

const filesIn = (home: string): string[] =>
  readdirSync(home, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map(({ parentPath, name }) => join(parentPath, name).slice(home.length + 1))
    .toSorted();

test.skipIf(!canRun)("every file has the digest in SHA256SUMS", () => {
  const sums = readFileSync(join(release, "SHA256SUMS"), "utf8").trim().split("\n");
  const listed = sums.map((line) => line.slice(66));
  expect(filesIn(release).filter((name) => !/^SHA256SUMS|\.minisig$/.test(name))).toEqual(listed.toSorted());
  const checked = Bun.spawnSync(["sha256sum", "--check", "--quiet", "SHA256SUMS"], { cwd: release });
  expect([checked.exitCode, checked.stdout.toString()]).toEqual([0, ""]);
});

test.skipIf(!canRun)("the shell: one line installs the program, which updates itself and can be removed", async () => {
  const home = makeHome("shell");
  const script = `curl -fsSL ${url}/install.sh | sh -s -- --prefix ${home}/prefix --no-gpu`;
  const installed = await run(["sh", "-c", script], home);
  expect(installed).toMatchObject({ code: 0, out: expect.stringContaining(`installed ${SAYS}`) });
  expect(filesIn(home)).toEqual(["prefix/bin/hearth"]);
  const program = join(home, "prefix/bin/hearth");
  expect((await run([program, "update", "--check"], home)).out).toBe(`${VERSION} is the newest release\n`);
  expect((await run([program, "devices"], home)).out).toMatch(/hearth update --gpu|libvulkan/);
  const gpu = await run([program, "update", "--gpu"], home);
  expect(gpu).toMatchObject({ code: 0, out: expect.stringContaining("'hearth devices' lists the GPUs") });
  expect(filesIn(home).some((name) => name.endsWith("dawn.node"))).toBe(true);
  expect(
    (await run(["sh", join(release, "install.sh"), "--uninstall", "--prefix", join(home, "prefix")], home)).code,
  ).toBe(0);
  expect(filesIn(home)).toEqual([]);
});

test.skipIf(!canRun)("the shell: an archive with another digest is not installed", async () => {
  const home = makeHome("damaged");
  const script = readFileSync(join(release, "install.sh"), "utf8");
  const other = script.replace(/^(release_digests='\S+ ).{8}/m, "$100000000");
  writeFileSync(join(home, "install.sh"), other);
  const refused = await run(["sh", "install.sh", "--prefix", join(home, "prefix")], home);
  expect(refused).toMatchObject({ code: 1, out: expect.stringMatching(/expected sha256 00000000\w+, got \w{64}/) });
  expect(filesIn(home)).toEqual(["install.sh"]);
});

test.skipIf(!canRun)("the shell: a truncated script does nothing", async () => {
  const home = makeHome("half");
  const script = readFileSync(join(release, "install.sh"), "utf8");
  writeFileSync(join(home, "install.sh"), script.slice(0, script.lastIndexOf("main ")));
  expect(await run(["sh", "install.sh", "--prefix", join(home, "prefix")], home)).toEqual({ code: 0, out: "" });
  expect(filesIn(home)).toEqual(["install.sh"]);
});

test.skipIf(!canRun || !Bun.which("dpkg") || process.getuid?.() !== 0)(
  "Debian: the package is installed, removed and purged",
  async () => {
    const home = makeHome("debian");
    const root = join(home, "root");
    mkdirSync(join(root, "var/lib/dpkg"), { recursive: true });
    writeFileSync(join(root, "var/lib/dpkg/status"), "");
    const dpkg = (...args: string[]): Promise<Ran> =>
      run(["dpkg", `--root=${root}`, "--force-script-chrootless", "--force-depends", ...args], home);
    const deb = join(release, `hearth_${VERSION}_${process.arch === "x64" ? "amd64" : "arm64"}.deb`);
    expect(await dpkg("--install", deb)).toMatchObject({ code: 0 });
    const own = (): string[] => filesIn(root).filter((name) => !name.startsWith("var/lib/dpkg/"));
    expect(own()).toEqual([
      "usr/bin/hearth",
      "usr/lib/systemd/system/hearth.service",
      "usr/share/doc/hearth/copyright",
    ]);
    expect((await run([join(root, "usr/bin/hearth"), "--version"], home)).out).toContain(SAYS);
    const unit = readFileSync(join(root, "usr/lib/systemd/system/hearth.service"), "utf8");
    expect(unit).toContain("ExecStart=/usr/bin/hearth serve\n");
    mkdirSync(join(root, "var/lib/hearth/models"), { recursive: true });
    writeFileSync(join(root, "var/lib/hearth/models/model"), "");
    expect((await dpkg("--remove", "hearth")).code).toBe(0);
    expect(own()).toEqual(["var/lib/hearth/models/model"]); // a removal keeps models
    expect((await dpkg("--purge", "hearth")).code).toBe(0);
    expect(own()).toEqual([]);
  },
);

async function runByNpx(): Promise<void> {
  const home = makeHome("npm");
  const env = { npm_config_registry: url, npm_config_cache: join(home, "cache"), npm_config_update_notifier: "false" };
  sent = 0;
  const first = await run(["npx", "--yes", "hearth-llm", "--version"], home, env);
  expect(first).toMatchObject({ code: 0, out: expect.stringContaining(SAYS) });
  const tarballs = NPM.map((name) => Bun.file(join(release, "npm", `${name}-${VERSION}.tgz`)).size);
  expect(sent).toBeLessThan(tarballs.reduce((sum, size) => sum + size) + 20_000); // the documents
  const refused = await run(["npx", "hearth-llm", "update"], home, env);
  expect(refused).toMatchObject({
    code: 1,
    out: expect.stringContaining("is updated by: npx --yes hearth-llm@latest"),
  });
}

async function refuseOtherDigest(): Promise<void> {
  const home = makeHome("npm-damaged");
  const packages = NPM.map((name) => join(release, "npm", `${name}-${VERSION}.tgz`));
  const env = { npm_config_registry: url, npm_config_cache: join(home, "cache"), npm_config_update_notifier: "false" };
  expect((await run(["npm", "install", "--no-audit", "--no-fund", ...packages], home, env)).code).toBe(0);
  const inside = join(home, "node_modules", NPM[1]!);
  const manifest = readFileSync(join(inside, "package.json"), "utf8");
  writeFileSync(join(inside, "package.json"), manifest.replace(/("sha256": ").{8}/, "$100000000"));
  const refused = await run([join(home, "node_modules/.bin/hearth"), "--version"], home);
  expect(refused).toMatchObject({ code: 1, out: expect.stringContaining("is damaged: install the package again") });
  expect(existsSync(join(inside, "hearth"))).toBe(false);
}

/** Each unpacks two packages of 150 MB for four seconds of processors: a run draws one. */
const BY_NPM = [
  ["npx downloads two packages, and the program runs", runByNpx],
  ["a program with another digest is not unpacked", refuseOtherDigest],
] as const;

test.skipIf(!canRun || !Bun.which("npm")).each(drawn("packages of npm", BY_NPM, 1))("npm: %s", (_, check) => check());
