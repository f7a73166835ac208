/** A server with its own certificate, and the command line on the same machine. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { eventually, isolatedEnv, runHearth, startHearth } from "./hearth.ts";

setDefaultTimeout(60_000);

const NAME = "models.example.org";

/** A certificate for a public name, by an authority that no machine trusts. */
function make(folder: string, name: string): void {
  const at = (ending: string): string => join(folder, `${name}.${ending}`);
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", at("key")];
  const about = ["-subj", `/CN=${name}`, "-addext", `subjectAltName=DNS:${NAME}`];
  const { exitCode } = Bun.spawnSync(["openssl", "req", "-x509", ...key, ...about, "-out", at("pem")], {
    stderr: "ignore",
  });
  expect(exitCode).toBe(0);
}

function nameAt(port: number): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false }, () => {
    resolve(String(socket.getPeerCertificate().subject.CN));
    socket.destroy();
  });
  socket.on("error", reject);
  return promise;
}

const trusting = { tls: { rejectUnauthorized: false } };

test.skipIf(!Bun.which("openssl"))("serves https, renews its certificate, and refuses a wrong pair", async () => {
  const home = mkdtempSync(join(tmpdir(), "hearth-own-tls-"));
  const at = (name: string): string => join(home, name);
  for (const name of ["a", "b"]) make(home, name);
  for (const ending of ["pem", "key"]) copyFileSync(at(`a.${ending}`), at(`live.${ending}`));
  const tls = { HEARTH_TLS_CERTIFICATE: at("live.pem"), HEARTH_TLS_KEY: at("live.key") };
  const hearth = await startHearth({ home, env: tls });
  try {
    const { port, protocol } = new URL(hearth.url);
    expect(protocol).toBe("https:");
    const fetched = await fetch(`${hearth.url}/health`, trusting);
    expect(fetched.status).toBe(200);
    // a short host name does not shift the path past the checks
    const short = { ...trusting, headers: { host: "a" }, method: "POST" };
    expect((await fetch(`${hearth.url}/api/tags`, short)).status).toBe(403);
    await expect(fetch(`http://127.0.0.1:${port}/health`)).rejects.toThrow();

    // the certificate is for another name: the command line trusts the file
    const env = { ...tls, HEARTH_HOST: `127.0.0.1:${port}` };
    const list = await runHearth(["list"], { home, env });
    expect([list.code, list.stderr, list.stdout]).toEqual([0, "", expect.stringContaining("hearth")]);
    const other = await runHearth(["list"], { home, env: { ...env, HEARTH_TLS_CERTIFICATE: at("b.pem") } });
    expect([other.code, other.stderr]).toEqual([1, expect.stringMatching(/could not connect .* at https:/)]);

    for (const ending of ["pem", "key"]) copyFileSync(at(`b.${ending}`), at(`live.${ending}`));
    expect(await eventually(async () => (await nameAt(Number(port)).catch(() => "")) === "b")).toBe(true);
    expect((await runHearth(["list"], { home, env })).code).toBe(0);

    const wrong = { ...tls, HEARTH_TLS_KEY: at("a.key"), ...isolatedEnv(home) };
    const { code, stderr } = await runHearth(["serve"], { home, env: wrong });
    expect([code, stderr.replaceAll(`${home}/`, "")]).toEqual([
      1,
      expect.stringContaining("tls.key: 'a.key' is not the key of the certificate 'live.pem'"),
    ]);
    const { HEARTH_TLS_KEY: _, ...half } = tls;
    const halved = await runHearth(["serve"], { home, env: half });
    expect([halved.code, halved.stderr]).toEqual([1, expect.stringContaining("HEARTH_TLS_KEY")]);
  } finally {
    await hearth.stop();
    rmSync(home, { recursive: true, force: true });
  }
});
