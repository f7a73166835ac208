import { afterEach, beforeEach, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { takeLock } from "../../src/base/process-lock.ts";

const MODULE = resolve(import.meta.dir, "../../src/base/process-lock.ts");

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "hearth-lock-"));
  path = join(folder, "deep", "x.lock");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Another process that holds the lock. */
async function holder(): Promise<Bun.Subprocess<"ignore", "pipe", "inherit">> {
  const code = `import { takeLock } from ${JSON.stringify(MODULE)};
    globalThis.lock = takeLock(${JSON.stringify(path)}, "x");
    console.log("held");
    setInterval(() => {}, 1000);`;
  const child = Bun.spawn([process.execPath, "-e", code], { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
  await child.stdout.getReader().read();
  return child;
}

test("a lock held by another process is an error that names the process, until it ends", async () => {
  const child = await holder();
  try {
    expect(() => takeLock(path, "the shelf")).toThrow(`the shelf is in use by process ${child.pid}: stop that one`);
  } finally {
    child.kill("SIGKILL");
    await child.exited;
  }
  takeLock(path, "the shelf").release();
}, 60_000);

test("a lock can be taken again after its release, and not before", () => {
  const lock = takeLock(path, "the shelf");
  expect(() => takeLock(path, "the shelf")).toThrow(`in use by process ${process.pid}`);
  lock.release();
  takeLock(path, "the shelf").release();
}, 60_000);

test("an error about a file that cannot be a lock names the file", () => {
  writeFileSync(join(folder, "y.lock"), "x".repeat(8192));
  expect(() => takeLock(join(folder, "y.lock"), "the shelf")).toThrow(`cannot lock '${join(folder, "y.lock")}'`);
});

/** Takes the lock as a user without rights: root would have them. Returns the error. */
function refusal(): string {
  const code = `const { takeLock } = await import(${JSON.stringify(MODULE)});
    if (process.getuid() === 0) process.setuid(65534);
    try { takeLock(${JSON.stringify(path)}, "x"); } catch (error) { console.log(error.message); }`;
  return Bun.spawnSync([process.execPath, "-e", code], { cwd: "/" }).stdout.toString().trim();
}

test.skipIf(process.platform === "win32")("a file of another user is an error that says so", () => {
  mkdirSync(dirname(path));
  chmodSync(folder, 0o755);
  chmodSync(dirname(path), 0o555);
  expect(refusal()).toBe(`cannot write to '${dirname(path)}': permission denied`);
  chmodSync(dirname(path), 0o755);
  takeLock(path, "x").release();
  chmodSync(path, 0o444);
  expect(refusal()).toBe(`cannot write to '${path}': permission denied`);
});
