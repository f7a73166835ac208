/** A listener whose clock is set back: its waits do not get longer. */
import { expect, spyOn, test } from "bun:test";
import { systemClock } from "../../../../src/base/clock.ts";
import { MailListener, type ListenerDeps } from "../../../../src/gateway/hooks/mail/listener.ts";
import { noMails } from "../../../../src/gateway/hooks/mail/status.ts";
import { afterTest } from "../../../cleanups.ts";
import { eventually } from "../../../e2e/hearth.ts";
import { openStore } from "../../../stores.ts";
import { silent } from "../ingress/fixtures.ts";
import { startScripted } from "./scripted-server.ts";

const HOUR_MS = 3_600_000;
/** Interval of the listener's checks of the password. */
const LOOK_MS = 5000;

test("a refused password is tried again after a minute although the clock was set back an hour", async () => {
  let looks = 0;
  const logins: number[] = [];
  const port = startScripted((socket, { tag, name }) => {
    if (name === "LOGIN") logins.push(looks);
    socket.write(name === "LOGIN" ? `${tag} NO [AUTHENTICATIONFAILED] no\r\n` : `${tag} OK done\r\n`);
  });
  const { setTimeout: after } = globalThis;
  let nowMs = systemClock.now();
  const timers = spyOn(globalThis, "setTimeout").mockImplementation(((work: () => void, ms: number) => {
    if (ms !== LOOK_MS) return after(work, ms);
    nowMs += looks++ === 0 ? -HOUR_MS : LOOK_MS;
    return after(work, 1);
  }) as typeof setTimeout);
  afterTest(() => timers.mockRestore());
  const deps = { store: openStore([]), log: silent, random: () => 0, mails: noMails(), now: () => nowMs };
  const accept = () => Promise.resolve({ kind: "full", retryAfterMs: 1 }); // for events to the main session
  const address = { host: "127.0.0.1", port, mailbox: "INBOX", caFile: undefined };
  const account = { ...address, user: "ann", security: "none", password: { value: "secret" } } as const;
  const mail = { pollSeconds: 60, includeBody: false, maxBytes: 1000 };
  const listener = new MailListener({ ...deps, accept } as unknown as ListenerDeps, { account, mail });
  listener.start();
  afterTest(() => listener.stop());
  expect(await eventually(() => logins.length === 2, 20_000)).toBe(true);
  expect(logins).toEqual([0, 60_000 / LOOK_MS]);
});

test("a short outage of a mailbox is not reported as a long one after the clock was set ahead", async () => {
  let nowMs = systemClock.now();
  let reports = 0;
  const deps = { store: openStore([]), log: silent, random: () => 0, mails: noMails(), now: () => (nowMs += HOUR_MS) };
  const accept = () => Promise.resolve({ kind: "full", retryAfterMs: (reports++, 1) });
  const address = { host: "127.0.0.1", port: 1, mailbox: "INBOX", caFile: undefined };
  const account = { ...address, user: "ann", security: "none", password: { value: "secret" } } as const;
  const mail = { pollSeconds: 60, includeBody: false, maxBytes: 1000 };
  const listener = new MailListener({ ...deps, accept } as unknown as ListenerDeps, { account, mail });
  listener.start();
  afterTest(() => listener.stop());
  expect(await eventually(() => listener.status.state === "down", 20_000)).toBe(true);
  expect(reports).toBe(0);
});
