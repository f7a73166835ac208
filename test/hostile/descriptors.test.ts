/** A server without free file descriptors logs it, and continues once connections close. */
import { connect, type Socket } from "node:net";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { eventually, isolatedEnv } from "../e2e/hearth.ts";
import { installSeeded, modelsFolder } from "../e2e/seeded-model.ts";
import { HEARTH } from "../program.ts";

setDefaultTimeout(60_000);

let started: Bun.Subprocess | undefined;
afterEach(() => started?.kill("SIGKILL"));

test("a server without free file descriptors logs it once, and once more when some are free again", async () => {
  const home = mkdtempSync(join(tmpdir(), "hearth-files-"));
  await installSeeded(modelsFolder(home), {});
  const child = Bun.spawn(["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", ...HEARTH, "serve"], {
    env: isolatedEnv(home),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  started = child;
  let log = "";
  void (async () => {
    for await (const bytes of child.stderr) log += Buffer.from(bytes).toString();
  })();
  let greeting = "";
  for await (const bytes of child.stdout) if ((greeting += Buffer.from(bytes).toString()).includes("\n")) break;
  const { port, href } = new URL(/http:\/\/\S+/.exec(greeting)![0]);
  const sockets = Array.from({ length: 100 }, (): Socket => connect(Number(port), "127.0.0.1").on("error", () => {}));
  const times = (text: string): number => log.split(text).length - 1;
  expect(await eventually(() => times("out of file descriptors") === 1)).toBe(true);
  for (const socket of sockets) socket.destroy();
  expect(await eventually(() => times("file descriptors are available again") === 1)).toBe(true);
  expect((await fetch(`${href}api/tags`)).status).toBe(200);
  expect(times("out of file descriptors")).toBe(1);
  child.kill("SIGKILL");
  await child.exited;
  rmSync(home, { recursive: true, force: true });
});
