/** The page and the models behind nginx with TLS, configured as docs/operations.md says. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ndjson, startHearth } from "./hearth.ts";
import { hasNginx, startNginx } from "./nginx.ts";

const ORIGIN = "https://models.example.org";

test.skipIf(!hasNginx || !Bun.which("openssl"))(
  "a page behind the documented proxy is answered, and pages of other origins are refused",
  async () => {
    const home = mkdtempSync(join(tmpdir(), "hearth-tls-"));
    const hearth = await startHearth({ home, env: { HEARTH_ORIGINS: ORIGIN } });
    const [certificate, key] = [join(home, "tls.pem"), join(home, "tls.key")];
    const request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=models.example.org"];
    expect(Bun.spawnSync([...request, "-keyout", key, "-out", certificate], { stderr: "ignore" }).exitCode).toBe(0);
    const docs = await Bun.file(join(import.meta.dir, "../../docs/operations.md")).text();
    const server = /```nginx\n(server \{[^`]*)```/
      .exec(docs)![1]!
      .replace("/etc/ssl/models.example.org.pem", certificate)
      .replace("/etc/ssl/models.example.org.key", key)
      .replace("http://127.0.0.1:11434", hearth.url);
    const nginx = await startNginx(server);
    try {
      const ask = (origin: string): Promise<Response> =>
        fetch(`https://127.0.0.1:${nginx.port}/api/chat`, {
          method: "POST",
          headers: { origin, host: "models.example.org" },
          body: JSON.stringify({ model: "hearth", messages: [{ role: "user", content: "Tell me a story." }] }),
          tls: { rejectUnauthorized: false },
        });
      const lines = await Array.fromAsync(ndjson(await ask(ORIGIN)));
      expect(lines.length).toBeGreaterThan(3);
      expect(lines.at(-1)).toMatchObject({ done: true });
      expect((await ask("https://evil.example")).status).toBe(403);
      const page = await fetch(`https://127.0.0.1:${nginx.port}/ui`, { tls: { rejectUnauthorized: false } });
      expect([page.status, page.headers.get("cross-origin-opener-policy")]).toEqual([200, "same-origin"]);
    } finally {
      await nginx.stop();
      await hearth.stop();
      rmSync(home, { recursive: true, force: true });
    }
  },
  60_000,
);
