/** `hearth update` against releases on a loopback server. */
import { beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newKey } from "../../../packaging/release/sign.ts";
import { VERSION } from "../../../src/base/version.ts";
import type { Terminal } from "../../../src/cli/terminal/terminal.ts";
import { fetchSmall } from "../../../src/cli/update/fetch.ts";
import { unpackFolder } from "../../../src/cli/update/gpu.ts";
import { updatedBy } from "../../../src/cli/update/installed.ts";
import { parseManifest, type ReleaseFile } from "../../../src/cli/update/manifest.ts";
import { update, type UpdateOptions } from "../../../src/cli/update/update.ts";
import { afterTest } from "../../cleanups.ts";
import { packedFile, programOf, serveFiles, serveRelease, signedList, sha256, type Served } from "./release-server.ts";

const key = await newKey();
const NEWER = "99.0.0";
const OLD_PROGRAM = programOf(VERSION);

let [folder, program]: string[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "hearth-update-"));
  afterTest(() => rmSync(folder!, { recursive: true, force: true }));
  program = join(folder, "hearth");
  writeFileSync(program, OLD_PROGRAM, { mode: 0o755 });
});

/** Returns all that the command wrote. */
async function run(served: Served | undefined, options: UpdateOptions = {}): Promise<string> {
  let text = "";
  const write = (more: string): void => void (text += `${more}\n`);
  const terminal = { write, note: write, showsProgress: false } as unknown as Terminal; // the used part
  const env = { HEARTH_UPDATE_KEY: key.publicKey, ...(served && { HEARTH_UPDATE_URL: served.url }) };
  await update({ terminal, env, program: program!, target: "linux-x64" }, options);
  return text;
}

const said = (path = program!): string => Bun.spawnSync([path, "--version"]).stdout.toString();
const unchanged = (): void => {
  expect(readdirSync(folder!)).toEqual(["hearth"]);
  expect(readFileSync(program!)).toEqual(OLD_PROGRAM);
};

test("a newer release replaces the program, and --rollback exchanges it with the previous one", async () => {
  const text = await run(await serveRelease(key, NEWER));
  expect(text).toContain(`updated ${program} from ${VERSION} to ${NEWER}`);
  expect(said()).toContain(`hearth ${NEWER} `);
  expect(readdirSync(folder!).toSorted()).toEqual(["hearth", "hearth.previous"]);
  await run(undefined, { rollback: true });
  expect([said(), said(`${program}.previous`)].map((line) => line.split(" ")[1])).toEqual([VERSION, NEWER]);
  await run(undefined, { rollback: true });
  expect(said()).toContain(NEWER);
});

test("--rollback fails without a previous program and changes nothing", async () => {
  await expect(run(undefined, { rollback: true })).rejects.toThrow("there is no earlier program");
  unchanged();
});

test("the program's file exists at all times while it is replaced", async () => {
  const served = await serveRelease(key, NEWER);
  const watch = Bun.spawn(["sh", "-c", `while [ -e ${program} ]; do :; done; echo missing`], { stdout: "pipe" });
  await run(served);
  await run(undefined, { rollback: true });
  watch.kill();
  expect(await new Response(watch.stdout).text()).toBe("");
});

test("--check names the newest release, and installs nothing", async () => {
  expect(await run(await serveRelease(key, NEWER), { check: true })).toContain(
    `${NEWER} is available; ${VERSION} is installed`,
  );
  expect(await run(await serveRelease(key, VERSION), { check: true })).toContain("is the newest release");
  unchanged();
});

test("the same release is not installed again, an older one only with --downgrade", async () => {
  expect(await run(await serveRelease(key, VERSION))).toContain("is the newest release");
  const older = await serveRelease(key, "0.0.1");
  await expect(run(older)).rejects.toThrow(`the release is 0.0.1, older than ${VERSION}: --downgrade installs it`);
  unchanged();
  await run(older, { downgrade: true });
  expect(said()).toContain("0.0.1");
});

describe("an update is refused, and the program unchanged", () => {
  const packed = Bun.zstdCompressSync(programOf(NEWER));
  const damaged = Buffer.from(packed).fill(0, 20, 24);
  const cases: readonly [name: string, served: () => Promise<Served>, says: string | RegExp][] = [
    [
      "another key's signature",
      async () => serveRelease(await newKey(), NEWER),
      "another key than this program trusts",
    ],
    [
      "a list that was changed after signing",
      async () => {
        const { files } = await serveRelease(key, NEWER);
        const list = Buffer.from(String(Buffer.from(files["release.json"] as Uint8Array)).replace(NEWER, "99.0.1"));
        return serveFiles({ ...files, "release.json": list });
      },
      "it was changed after signing",
    ],
    [
      "no signature",
      async () => serveFiles({ "release.json": (await signedList(key, {}))["release.json"]! }),
      /release\.json\.minisig: the server answered 404/,
    ],
    ["a signed list of another form", async () => serveFiles(await signedList(key, [1])), "expected an object"],
    [
      "a wrong digest",
      () => serveRelease(key, NEWER, { change: { sha256: sha256("x") } }),
      "expected the digest sha256:",
    ],
    [
      "a wrong digest of the program inside",
      () => serveRelease(key, NEWER, { change: { unpackedSha256: sha256("x") } }),
      "program.zst, unpacked: expected the digest",
    ],
    [
      "a file that is too long",
      () => serveRelease(key, NEWER, { change: { bytes: 10 } }),
      "expected 10 bytes, got more",
    ],
    [
      "a file that is too short",
      () => serveRelease(key, NEWER, { change: { bytes: 9999 } }),
      /expected 9999 bytes, got \d/,
    ],
    [
      "a program that unpacks to more than it says",
      () => serveRelease(key, NEWER, { change: { unpackedBytes: 5 } }),
      "unpacked: expected 5 bytes, got more",
    ],
    [
      "a damaged file whose digest was signed",
      async () => {
        const change = { sha256: sha256(damaged), bytes: damaged.length };
        return serveFiles({ ...(await serveRelease(key, NEWER, { change })).files, "program.zst": damaged });
      },
      /./,
    ],
    [
      "no program for this system",
      () => serveRelease(key, NEWER, { change: { target: "darwin-arm64" } }),
      "has no program for linux-x64",
    ],
    [
      "a program that does not start",
      () => serveRelease(key, NEWER, { program: Buffer.from("#!/does/not/exist\n") }),
      "the new program does not start here",
    ],
    [
      "a program of another version",
      () => serveRelease(key, NEWER, { program: programOf("98.0.0") }),
      `expected 'hearth ${NEWER}', got 'hearth 98.0.0`,
    ],
    ["a server that has no releases", async () => serveFiles({}), "release.json: the server answered 404"],
  ];
  test.each(cases)("for %s", async (_, served, says) => {
    await expect(run(await served())).rejects.toThrow(says);
    unchanged();
  });
});

test("a missing address, a file URL and a wrong key are refused", async () => {
  await expect(run(undefined)).rejects.toThrow("names no address of releases: expected --url or HEARTH_UPDATE_URL");
  await expect(run(undefined, { url: "file:///tmp" })).rejects.toThrow("expected http:// or https://");
  await expect(run(await serveRelease(key, NEWER), { key: "secret" })).rejects.toThrow(
    "expected a public key of minisign",
  );
});

test("a server that stalls ends the download", async () => {
  const stalls = () => new Response(new ReadableStream({ start: (all) => all.enqueue(Buffer.from("{")) }));
  const { url } = serveFiles({ "release.json": stalls });
  await expect(fetchSmall(`${url}/release.json`, 10, { stallMs: 100 })).rejects.toThrow("nothing came for 1 seconds");
});

test("a list longer than the limit is refused", async () => {
  const endless = () => new Response(new ReadableStream({ pull: (all) => all.enqueue(new Uint8Array(1 << 16)) }));
  const { url } = serveFiles({ "release.json": endless });
  await expect(fetchSmall(`${url}/release.json`, 1 << 20)).rejects.toThrow("expected at most 1048576 bytes");
});

test.skipIf(process.getuid?.() === 0)("an update fails with permission denied in a read-only folder", async () => {
  chmodSync(folder!, 0o555);
  afterTest(() => chmodSync(folder!, 0o755));
  await expect(run(await serveRelease(key, NEWER))).rejects.toThrow("permission denied");
});

test.each([
  ["/opt/homebrew/Cellar/hearth/0.2.0/bin/hearth", "brew upgrade hearth"],
  [String.raw`C:\Users\a\scoop\apps\hearth\current\hearth.exe`, "scoop update hearth"],
  [
    String.raw`C:\Users\a\AppData\Local\Microsoft\WinGet\Packages\Hearth.Hearth_x\hearth.exe`,
    "winget upgrade Hearth.Hearth",
  ],
  ["/root/.npm/_npx/1/node_modules/hearth-llm-linux-x64/hearth", "npx --yes hearth-llm@latest"],
  ["/usr/lib/node_modules/hearth-llm-linux-x64/hearth", "npm install --global hearth-llm@latest"],
  ["/home/a/.cache/hearth/npm-0.2.0/hearth", "npm install --global hearth-llm@latest"],
  ["/usr/bin/hearth", "sudo apt-get install ./hearth_VERSION_ARCHITECTURE.deb, with the new release's file"],
  ["/usr/local/bin/hearth", undefined],
  ["/home/a/node/hearth", undefined],
])("%s names its package manager's command, or none", (path, command) => {
  expect(updatedBy(path)).toBe(command);
});

test("update refuses a program of a package manager or a checkout, and names the command", async () => {
  const served = await serveRelease(key, NEWER);
  mkdirSync(join(folder!, "node_modules"));
  program = join(folder!, "node_modules/hearth");
  await expect(run(served)).rejects.toThrow("is updated by: npm install --global hearth-llm@latest");
  await expect(run(served, { rollback: true })).rejects.toThrow("is updated by: npm install");
  expect(await run(served, { check: true })).toContain("Update: npm install --global");
  program = undefined;
  await expect(run(served)).rejects.toThrow("Hearth runs from its sources here: git pull && bun install");
});

describe("a release list is refused", () => {
  const { entry } = packedFile(programOf(NEWER), {});
  const list = (change: object): unknown => ({ version: NEWER, files: [{ ...entry, ...change }] });
  test.each([
    [list({ file: "../hearth" }), "files.0.file: expected a name without folders"],
    [list({ file: ".." }), "files.0.file"],
    [list({ bytes: 2 ** 40 }), "files.0.bytes: expected a number of bytes up to"],
    [list({ unpackedBytes: -1 }), "files.0.unpackedBytes"],
    [list({ sha256: "abc" }), "files.0.sha256: expected 64 hexadecimal digits"],
    [list({ kind: "script" }), "files.0.kind: expected program or gpu"],
    [{ version: "1", files: [] }, "version: expected a version such as 1.2.3"],
    [{ version: NEWER, files: {} }, "files: expected an array"],
  ])("if it is %j", (value, says) => {
    expect(() => parseManifest(Buffer.from(JSON.stringify(value)))).toThrow(says);
  });
  test("if it is not text", () => {
    expect(() => parseManifest(new Uint8Array([0xff, 0xfe]))).toThrow("release.json: expected JSON");
  });
});

describe("the files of a package", () => {
  const served = async (files: Record<string, string>) => {
    const { packed, entry } = packedFile(await new Bun.Archive(files).bytes(), { kind: "gpu", file: "gpu.tar.zst" });
    return { url: serveFiles({ "gpu.tar.zst": packed }).url, about: entry as unknown as ReleaseFile };
  };
  const options = { onBytes: () => {} };

  test("replace the older folder as a whole", async () => {
    const { url, about } = await served({ "package.json": "{}", "dist/linux-x64/dawn.node": "library" });
    const to = join(folder!, "webgpu-1");
    mkdirSync(to);
    writeFileSync(join(to, "old"), "");
    await unpackFolder(url, about, to, options);
    expect(readdirSync(folder!).toSorted()).toEqual(["hearth", "webgpu-1"]);
    expect(readFileSync(join(to, "dist/linux-x64/dawn.node"), "utf8")).toBe("library");
    expect(readdirSync(to).toSorted()).toEqual(["dist", "package.json"]);
  });

  test("stay within their folder", async () => {
    const { url, about } = await served({ "../outside": "x" });
    await unpackFolder(url, about, join(folder!, "webgpu-1"), options).catch(() => {});
    expect(readdirSync(folder!)).not.toContain("outside");
  });
});
