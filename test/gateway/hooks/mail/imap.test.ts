/** Connecting to a mailbox on a real IMAP server. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { MailAccount } from "../../../../src/gateway/hooks/mail/config.ts";
import { openMailbox } from "../../../../src/gateway/hooks/mail/imap.ts";
import { hasDovecot, PASSWORD, startDovecot, USER, type Dovecot } from "./dovecot.ts";

setDefaultTimeout(120_000); // 3 s alone

let server: Dovecot;
beforeAll(async () => {
  if (hasDovecot) server = await startDovecot();
});
afterAll(() => server?.remove());

const account = (more: Partial<MailAccount> = {}): MailAccount => ({
  host: "127.0.0.1",
  port: server.port,
  user: USER,
  mailbox: "INBOX",
  security: "none",
  caFile: undefined,
  password: { value: PASSWORD },
  ...more,
});
type Options = Partial<Parameters<typeof openMailbox>[1]>;
const open = (more: Partial<MailAccount> = {}, options: Options = {}) =>
  openMailbox(account(more), { password: PASSWORD, signal: new AbortController().signal, ...options });

describe.skipIf(!hasDovecot)("opening a mailbox", () => {
  test.each<[string, () => Partial<MailAccount>]>([
    ["without TLS", () => ({})],
    ["with TLS, to an address", () => ({ security: "tls", port: server.tlsPort, caFile: server.caFile })],
    [
      "with TLS, to a name",
      () => ({ host: "localhost", security: "tls", port: server.tlsPort, caFile: server.caFile }),
    ],
    ["with STARTTLS", () => ({ security: "starttls", caFile: server.caFile })],
    ["with STARTTLS, to a name", () => ({ host: "localhost", security: "starttls", caFile: server.caFile })],
  ])("works %s", async (_, more) => {
    const box = await open(more());
    expect(box.uidValidity).toMatch(/^[1-9]\d*$/);
    expect(box.uidNext).toBeGreaterThan(0);
    await box.close();
  });

  test.each<[string, () => Partial<MailAccount>, string, string]>([
    [
      "a certificate of nobody, TLS",
      () => ({ security: "tls", port: server.tlsPort }),
      "upstream",
      "hooks.mail.caFile",
    ],
    ["a certificate of nobody, STARTTLS", () => ({ security: "starttls" }), "upstream", "hooks.mail.caFile"],
    [
      "another's certificate",
      () => ({ host: "127.0.0.2", security: "tls", port: server.tlsPort, caFile: server.caFile }),
      "upstream",
      "ERR_TLS_CERT_ALTNAME_INVALID",
    ],
    ["TLS where there is none", () => ({ security: "tls" }), "upstream", "see hooks.mail.secure and hooks.mail.port"],
    ["a mailbox that is not there", () => ({ mailbox: "No" }), "not_found", "there is no mailbox 'No'"],
    ["a file of a certificate that is not there", () => ({ caFile: "/nowhere.pem" }), "bad_request", "ENOENT"],
  ])("fails with %s", async (_, more, code, message) => {
    await expect(open(more())).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
  });

  test("names the caller's own options in errors", async () => {
    const names = { caFile: "--ca-file", secure: "--starttls", port: "--port" };
    const opened = (more: Partial<MailAccount>) => open(more, { names });
    await expect(opened({ security: "tls", port: server.tlsPort })).rejects.toThrow("certificate: --ca-file");
    await expect(opened({ security: "tls" })).rejects.toThrow("see --starttls and --port");
    await expect(opened({ caFile: "/nowhere.pem" })).rejects.toThrow("--ca-file: cannot read '/nowhere.pem'");
  });

  test("fails with a wrong password, which the error does not show", async () => {
    await expect(open({}, { password: "wrong-password" })).rejects.toMatchObject({
      code: "unauthorized",
      message: `127.0.0.1:${server.port} refuses the password of 'joe': Authentication failed.`,
    });
  });

  test("fails on a server without STARTTLS before the password is sent in clear", async () => {
    const sent: string[] = [];
    const listener = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: {
        open: (socket) => void socket.write("* OK [CAPABILITY IMAP4rev1 AUTH=PLAIN] hello\r\n"),
        data(socket, bytes) {
          const line = bytes.toString();
          sent.push(line);
          socket.write(`${line.split(" ")[0]} OK done\r\n`);
        },
      },
    });
    const { port } = listener;
    await expect(open({ security: "starttls", port })).rejects.toMatchObject({
      code: "upstream",
      message: expect.stringContaining("STARTTLS"),
    });
    listener.stop(true);
    expect(sent.join("")).not.toMatch(/AUTHENTICATE|LOGIN/i);
  });

  test("fails at once if it is aborted, and so do later operations", async () => {
    const stop = new AbortController();
    const box = await open({}, { signal: stop.signal });
    const news = box.news(3_600_000);
    stop.abort();
    await expect(news).rejects.toMatchObject({ code: "upstream" });
    await expect(box.uidsAfter(0)).rejects.toMatchObject({ code: "upstream" });
    await box.close();
    await expect(open({}, { signal: stop.signal })).rejects.toMatchObject({ code: "cancelled" });
  });

  test("polls a server without notifications", async () => {
    const mute = await startDovecot({ settings: "imap_capability = IMAP4rev1 LITERAL+\n" });
    try {
      const box = await open({ port: mute.port });
      const uid = await mute.deliver("Subject: x\r\n\r\nx\r\n");
      let found: readonly number[] = [];
      for (let looks = 0; looks < 100 && found.length === 0; looks++) {
        await box.news(50);
        found = await box.uidsAfter(0);
      }
      expect(found).toEqual([uid]);
      await box.close();
    } finally {
      await mute.remove();
    }
  });
});
