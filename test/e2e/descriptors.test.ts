/** A server that may open few files, and connections that take all of them. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HEARTH } from "../program.ts";
import { eventually, isolatedEnv } from "./hearth.ts";

test.skipIf(process.platform !== "linux")(
  "it says once that no descriptor is left, and goes on when some are",
  async () => {
    const home = mkdtempSync(join(tmpdir(), "hearth-fds-"));
    const child = Bun.spawn(["bash", "-c", 'ulimit -n 160; exec "$@"', "-", ...HEARTH, "serve"], {
      env: isolatedEnv(home),
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    let log = "";
    void (async () => {
      for await (const chunk of child.stderr) log += new TextDecoder().decode(chunk);
    })();
    const sockets: Socket[] = [];
    try {
      const { value } = await child.stdout.getReader().read();
      const url = /http:\/\/\S+/.exec(new TextDecoder().decode(value))![0];
      const port = Number(new URL(url).port);
      for (let i = 0; i < 400; i++) sockets.push(connect(port, "127.0.0.1").on("error", () => {}));
      expect(await eventually(() => log.includes("no file descriptor is left"), 30_000)).toBe(true);
      for (const socket of sockets.splice(0)) socket.destroy();
      expect(await eventually(async () => (await fetch(`${url}/livez`)).ok, 30_000)).toBe(true);
      expect(log.split("no file descriptor is left")).toHaveLength(2);
    } finally {
      for (const socket of sockets) socket.destroy();
      child.kill("SIGKILL");
      await child.exited;
      rmSync(home, { recursive: true, force: true });
    }
  },
  120_000,
);
