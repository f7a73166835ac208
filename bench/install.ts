#!/usr/bin/env bun
/**
 * A fresh install in each way that Linux has: bytes downloaded, and seconds from the command to the first answer.
 *
 *   bun packaging/release.ts --out FOLDER --url http://127.0.0.1:38080 --targets linux-x64
 *   bun bench/install.ts FOLDER
 *
 * The release is served from loopback, so the seconds are for unpacking and starting; add the download.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const PORT = 38_090;
const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error("expected the folder of a release");
const release = resolve(folder);
const { version } = JSON.parse(readFileSync(join(release, "release.json"), "utf8")) as { version: string };
const target = `linux-${process.arch}`;
const packages = ["hearth-llm", `hearth-llm-${target}`];

let sent = 0;
const server = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  async fetch(request) {
    const name = new URL(request.url).pathname.slice(1);
    const file = Bun.file(join(release, name));
    const body = packages.includes(name) ? document(name) : (await file.exists()) ? await file.bytes() : undefined;
    if (body === undefined) return new Response("not here", { status: 404 });
    sent += body.length;
    return new Response(body);
  },
});
const url = `http://127.0.0.1:${server.port}`;

/** npm's document about a package of the release. */
function document(name: string): string {
  const tarball = join(release, "npm", `${name}-${version}.tgz`);
  const manifest = JSON.parse(Bun.spawnSync(["tar", "xzOf", tarball, "package/package.json"]).stdout.toString());
  const integrity = `sha512-${new Bun.CryptoHasher("sha512").update(readFileSync(tarball)).digest("base64")}`;
  const dist = { tarball: `${url}/npm/${name}-${version}.tgz`, integrity };
  return JSON.stringify({ name, "dist-tags": { latest: version }, versions: { [version]: { ...manifest, dist } } });
}

interface Way {
  readonly name: string;
  /** A script that installs below `$HOME`, and the command that serves then. */
  readonly script: string;
  readonly serve: string;
}

const deb = readdirSync(release).find((name) => name.endsWith(".deb"));
const WAYS: readonly Way[] = [
  {
    name: "`curl -fsSL URL/install.sh \\| sh`",
    script: `curl -fsSL ${url}/install.sh | HEARTH_RELEASE_URL=${url} sh -s -- --prefix $HOME/p --no-gpu`,
    serve: "$HOME/p/bin/hearth serve",
  },
  {
    name: "`npx hearth-llm serve`",
    script: ":",
    serve: `npm_config_registry=${url} npm_config_cache=$HOME/cache npx --yes hearth-llm serve`,
  },
  {
    name: "the .deb",
    script: `curl -fsSLO ${url}/${deb} && mkdir -p root/var/lib/dpkg && touch root/var/lib/dpkg/status &&
      dpkg --root=$HOME/root --force-script-chrootless --force-depends --install ${deb}`,
    serve: "$HOME/root/usr/bin/hearth serve",
  },
];

async function measure({ name, script, serve }: Way): Promise<string> {
  const home = mkdtempSync(join(tmpdir(), "hearth-install-"));
  mkdirSync(join(home, "tmp"));
  const env = { HOME: home, PATH: process.env["PATH"]!, HEARTH_HOST: `127.0.0.1:${PORT}` };
  sent = 0;
  const began = performance.now();
  const output = join(home, "output");
  writeFileSync(output, "");
  // a separate process group, because npx passes no signals on
  const child = Bun.spawn(
    ["setsid", "sh", "-ec", `cd $HOME; { ${script}; } >output 2>&1; exec env ${serve} >>output 2>&1`],
    { env },
  );
  try {
    const seconds = await firstAnswer(began, child);
    return `| ${name} | ${(sent / 1e6).toFixed(1)} MB | ${seconds.toFixed(1)} s |`;
  } catch (error) {
    throw new Error(`${name}: ${(error as Error).message}: ${readFileSync(output, "utf8")}`, { cause: error });
  } finally {
    if (child.exitCode === null) process.kill(-child.pid, "SIGTERM");
    await Bun.sleep(2000);
    rmSync(home, { recursive: true, force: true });
  }
}

async function firstAnswer(began: number, child: Bun.Subprocess): Promise<number> {
  const messages = [{ role: "user", content: "Hello! Who are you?" }];
  const body = JSON.stringify({ model: "hearth", messages, stream: false, options: { temperature: 0 } });
  while (performance.now() - began < 120_000) {
    if (child.exitCode !== null) throw new Error(`ended with ${child.exitCode}`);
    const reply = await fetch(`http://127.0.0.1:${PORT}/api/chat`, { method: "POST", body }).catch(() => undefined);
    if (reply?.ok && (await reply.text()).includes("Hearth")) return (performance.now() - began) / 1000;
    await Bun.sleep(20);
  }
  throw new Error("no answer");
}

console.log("| way | downloaded | to the first answer |\n| --- | --- | --- |");
for (const way of WAYS) console.log(await measure(way));
await server.stop(true);
