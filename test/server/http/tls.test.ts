/** A server that speaks TLS: its files, their errors, and a new certificate while it serves. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { showHttps } from "../../../src/server/http/https-url.ts";
import { startServer } from "../../../src/server/http/serve.ts";
import { readTls, watchTls, type TlsPair } from "../../../src/server/http/tls.ts";
import { eventually } from "../../e2e/hearth.ts";

const hasOpenssl = Boolean(Bun.which("openssl"));
const folder = mkdtempSync(join(tmpdir(), "hearth-tls-"));
afterAll(() => rmSync(folder, { recursive: true }));
const at = (name: string): string => join(folder, name);
const filesOf = (name: string, key = name) => ({ certificate: at(`${name}.pem`), key: at(`${key}.key`) });

function openssl(...args: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(["openssl", ...args], { stderr: "pipe" });
  if (exitCode !== 0) throw new Error(String(stderr));
}

/** A certificate for this machine that `name` signs itself. */
function make(name: string): void {
  const names = ["-subj", `/CN=${name}`, "-addext", "subjectAltName=IP:127.0.0.1"];
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", at(`${name}.key`)];
  openssl("req", "-x509", "-days", "30", ...key, ...names, "-out", at(`${name}.pem`));
}

beforeAll(() => {
  if (!hasOpenssl) return;
  for (const name of ["a", "b"]) make(name);
  openssl("ec", "-in", at("a.key"), "-aes128", "-passout", "pass:x", "-out", at("locked.key"));
  writeFileSync(at("junk.pem"), "junk");
  writeFileSync(at("junk.key"), "junk");
});

describe.skipIf(!hasOpenssl)("files", () => {
  const failure = (files: Parameters<typeof readTls>[0], now?: () => number): string => {
    try {
      readTls(files, now);
      return "";
    } catch (error) {
      return (error as Error).message.replaceAll(`${folder}/`, "");
    }
  };

  test("a matching certificate and key are read", () => {
    expect(readTls(filesOf("a"))).toEqual({
      cert: expect.stringContaining("CERTIFICATE"),
      key: expect.stringContaining("KEY"),
    });
  });

  test("an error names the file and its fault", () => {
    expect(failure(filesOf("a", "b"))).toBe("tls.key: 'b.key' is not the key of the certificate 'a.pem'");
    expect(failure(filesOf("nope"))).toBe("tls.certificate: nope.pem: no such file");
    expect(failure(filesOf("a", "nope"))).toBe("tls.key: nope.key: no such file");
    expect(failure(filesOf("junk"))).toBe("tls.certificate: 'junk.pem': expected a certificate in PEM");
    expect(failure(filesOf("a", "junk"))).toBe("tls.key: 'junk.key': expected a private key in PEM");
    expect(failure({ ...filesOf("a"), certificate: folder })).toMatch(/^tls\.certificate: .*cannot be read/);
    expect(failure(filesOf("a", "locked"))).toBe(
      "tls.key: 'locked.key': expected a key without a passphrase, got an encrypted one",
    );
    const day = 24 * 3_600_000;
    expect(failure(filesOf("a"), () => Date.now() + 31 * day)).toMatch(/^tls\.certificate: 'a\.pem' expired on \w/);
    expect(failure(filesOf("a"), () => Date.now() - day)).toMatch(/^tls\.certificate: 'a\.pem' is not valid before \w/);
  });
});

const host = { hostname: "127.0.0.1", port: 0 };
const trusting = { tls: { rejectUnauthorized: false } };

/** The name in the certificate of a new connection. */
function nameAt(url: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket: TLSSocket = connect({ host: "127.0.0.1", port: Number(new URL(url).port), rejectUnauthorized: false });
  socket.on("secureConnect", () => {
    resolve(String(socket.getPeerCertificate().subject.CN));
    socket.destroy();
  });
  socket.on("error", reject);
  return promise;
}

/** Answers with its peer; `/slow` streams until it is released. */
function slowApp() {
  const released = Promise.withResolvers<void>();
  const app: Parameters<typeof startServer>[0] = {
    fetch(request) {
      showHttps(request);
      const peer = app.server?.requestIP(request)?.address;
      if (!request.url.endsWith("/slow")) return new Response(`${new URL(request.url).protocol} ${peer}`);
      const chunks = async function* () {
        yield "first,";
        await released.promise;
        yield "last";
      };
      return new Response(chunks());
    },
  };
  return { app, release: released.resolve };
}

describe.skipIf(!hasOpenssl || process.platform === "win32")("a new certificate", () => {
  test("serves new connections at the same port, while answers continue and client addresses stay known", async () => {
    const { app, release } = slowApp();
    const server = startServer(app, { host }, readTls(filesOf("a")));
    expect(server.url).toStartWith("https://127.0.0.1:");
    expect(await nameAt(server.url)).toBe("a");
    const slow = (await fetch(`${server.url}/slow`, trusting)).body!.getReader();
    expect(new TextDecoder().decode((await slow.read()).value)).toBe("first,");
    await server.renew(readTls(filesOf("b")));
    for (let i = 0; i < 5; i++) expect(await nameAt(server.url)).toBe("b");
    expect(await (await fetch(server.url, trusting)).text()).toBe("https: 127.0.0.1");
    release();
    expect(new TextDecoder().decode((await slow.read()).value)).toBe("last");
    await server.stop(0);
    await expect(nameAt(server.url)).rejects.toThrow();
  });

  test("a port in use is an error, with TLS and without", async () => {
    const { app } = slowApp();
    const pair = readTls(filesOf("a"));
    const server = startServer(app, { host }, pair);
    const port = Number(new URL(server.url).port);
    expect(() => startServer(app, { host: { ...host, port } })).toThrow("already in use");
    expect(() => startServer(app, { host: { ...host, port } }, pair)).toThrow("already in use");
    await server.stop(0);
  });

  test("requests during a change of certificates are answered", async () => {
    const { app } = slowApp();
    const pairs = [readTls(filesOf("a")), readTls(filesOf("b"))] as const;
    const server = startServer(app, { host }, pairs[0]);
    const answered = [0, 0, 0];
    let isOver = false;
    const ask = async (_: number, i: number): Promise<void> => {
      for (; !isOver; answered[i]!++) {
        const response = await fetch(server.url, trusting);
        expect(await response.text()).toBe("https: 127.0.0.1");
      }
    };
    const asking = Promise.all(answered.map(ask));
    // each asks for longer than ten changes take, and beside some of them
    for (let i = 0; i < 10 || Math.min(...answered) < 4; i++) await server.renew(pairs[i % 2]!);
    isOver = true;
    await asking;
    await server.stop(0);
  });

  test("is read when both files have changed and match", async () => {
    const files = filesOf("live");
    for (const kind of ["pem", "key"]) copyFileSync(at(`a.${kind}`), at(`live.${kind}`));
    const pairs: TlsPair[] = [];
    const logs: string[] = [];
    const log = {
      info: (message: string) => void logs.push(message),
      warn: (message: string) => void logs.push(message),
    };
    const stop = watchTls(files, { log, onChange: (pair) => void pairs.push(pair), everyMs: 5 });
    copyFileSync(at("b.pem"), files.certificate);
    await eventually(() => logs.length === 1);
    rmSync(files.key);
    await eventually(() => logs.length === 2);
    copyFileSync(at("b.key"), files.key);
    await eventually(() => pairs.length > 0);
    expect(pairs).toEqual([readTls(filesOf("b"))]);
    const refused = "the new certificate is unusable: the last one stays in use";
    expect(logs).toEqual([refused, refused, "the new certificate is in use"]);
    stop();
  });
});
