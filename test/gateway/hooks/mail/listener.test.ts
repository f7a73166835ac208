/** A listener and servers with minimal answers. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { MailListener, type ListenerDeps } from "../../../../src/gateway/hooks/mail/listener.ts";
import { mailMigrations } from "../../../../src/gateway/hooks/mail/position.ts";
import { noMails } from "../../../../src/gateway/hooks/mail/status.ts";
import { afterTest } from "../../../cleanups.ts";
import { eventually } from "../../../e2e/hearth.ts";
import { openStore } from "../../../stores.ts";
import { silent } from "../ingress/fixtures.ts";
import { startScripted } from "./scripted-server.ts";

setDefaultTimeout(30_000); // 1 s alone

/** A mailbox of two mails on a server without UIDNEXT; breaks each connection at the first look. */
function startTerse(): { readonly port: number; readonly searches: readonly string[] } {
  const searches: string[] = [];
  const said: Readonly<Record<string, string>> = {
    CAPABILITY: "* CAPABILITY IMAP4rev1\r\n",
    LIST: '* LIST () "/" INBOX\r\n',
    EXAMINE: "* 2 EXISTS\r\n* OK [UIDVALIDITY 7] valid\r\n",
    UID: "* SEARCH 41 57\r\n",
  };
  const port = startScripted((socket, { tag, name, line }) => {
    if (name === "UID") searches.push(line.split(" ").slice(2).join(" "));
    if (name === "UID" && !line.endsWith(" 1:*")) socket.end();
    else socket.write(`${said[name] ?? ""}${tag} OK done\r\n`);
  });
  return { port, searches };
}

test("on a server without UIDNEXT, mails that are there at the first look are not reported as new", async () => {
  const { port, searches } = startTerse();
  const deps = { store: openStore(mailMigrations), log: silent, random: () => 0, mails: noMails(), now: Date.now };
  const address = { host: "127.0.0.1", port, mailbox: "INBOX", caFile: undefined };
  const account = { ...address, user: "ann", security: "none", password: { value: "secret" } } as const;
  const mail = { pollSeconds: 60, includeBody: false, maxBytes: 1000 };
  const listener = new MailListener(deps as unknown as ListenerDeps, { account, mail });
  listener.start();
  afterTest(() => listener.stop());
  expect(await eventually(() => searches.length >= 3, 20_000)).toBe(true);
  // the first position is kept across connections
  expect(searches.slice(0, 3)).toEqual(["SEARCH UID 1:*", "SEARCH UID 58:*", "SEARCH UID 58:*"]);
});
