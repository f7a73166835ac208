/** nginx in front of a server, on a free port of the loopback interface; Debian's `nginx-light`. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../free-port.ts";
import { eventually } from "./hearth.ts";

const NGINX = "/usr/sbin/nginx";
export const hasNginx = existsSync(NGINX);

/**
 * Resolves with its port.
 * @param text content of the `server` block, or that block, whose port is replaced
 */
export async function startNginx(text: string): Promise<{ port: number; stop(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), "hearth-nginx-"));
  const port = freePort();
  const server = text.startsWith("server {")
    ? text.replace(/listen \d+/, `listen 127.0.0.1:${port}`)
    : `server { listen 127.0.0.1:${port}; ${text} }`;
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  writeFileSync(
    join(folder, "nginx.conf"),
    `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log;
     events {}
     http {
       access_log off;
       ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join(" ")}
       ${server}
     }`,
  );
  const child = Bun.spawn([NGINX, "-p", folder, "-c", join(folder, "nginx.conf")], {
    stdout: "ignore",
    stderr: "pipe",
  });
  const listens = await eventually(async () => child.exitCode !== null || (await isOpen(port)));
  if (!listens || child.exitCode !== null) throw new Error(`nginx did not start: ${await textOf(child.stderr)}`);
  return {
    port,
    async stop() {
      child.kill("SIGKILL");
      await child.exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const textOf = (stream: ReadableStream<Uint8Array>): Promise<string> => new Response(stream).text();

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}
