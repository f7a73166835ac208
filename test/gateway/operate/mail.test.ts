/** A mailbox that a gateway listens to: a real IMAP server, real sockets, a model that answers by a script. */
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { hasDovecot, PASSWORD, startDovecot, USER, type Dovecot } from "../hooks/mail/dovecot.ts";
import { eventually } from "../../e2e/hearth.ts";
import { quiet, startGateway, TOKEN, type GatewayBench } from "./fixtures.ts";
import { queryAll, queryOne } from "../../../src/gateway/database/store.ts";

setDefaultTimeout(300_000); // 15 s alone
const WAIT_MS = 60_000;

let server: Dovecot;
beforeAll(async () => {
  if (hasDovecot) server = await startDovecot();
});
afterAll(() => server?.remove());
let boxes = 0;
let mailbox: string;
beforeEach(async () => {
  if (!hasDovecot) return;
  mailbox = `Box${boxes++}`;
  await server.withClient((client) => client.mailboxCreate(mailbox));
});

/** A heartbeat after each run would take the events, and ask the model too. */
const silently = { deliver: false, wakeMode: "next-heartbeat" };

const account = () => ({
  host: "127.0.0.1",
  port: server.port,
  secure: false,
  user: USER,
  password: PASSWORD,
  mailbox,
});
const configured = (mail: object = {}, hooks: object = {}) => ({
  hooks: {
    enabled: true,
    token: TOKEN,
    presets: ["mail"],
    presetSettings: { mail: silently },
    mail: { ...account(), ...mail },
    ...hooks,
  },
  agents: quiet,
});

const letter = (n: number | string, body = "Please look.", headers = ""): string =>
  `From: Ada <ada@example.org>\r\nTo: joe@example.org\r\nSubject: Lamp ${n}\r\nMessage-ID: <m-${n}@example.org>\r\n` +
  `Date: Sat, 21 Nov 2026 14:00:00 +0000\r\n${headers}\r\n${body}\r\n`;
const deliver = (source: string | Uint8Array, receivedAt?: Date): Promise<number> =>
  server.deliver(source, { mailbox, ...(receivedAt ? { receivedAt } : {}) });

const mail = (bench: GatewayBench) => bench.gateway.mail.status;
/** Spares the waits between tries. */
const pokeMail = ({ gateway }: GatewayBench): void => gateway.mail.load(gateway.snapshot());
/** Counts are updated a moment later. */
const counts = (bench: GatewayBench, mails: object): Promise<boolean> =>
  eventually(() => Bun.deepMatch(mails, { ...mail(bench)?.mails }), WAIT_MS);
const listens = async (bench: GatewayBench): Promise<void> => {
  const isUp = await eventually(() => mail(bench)?.state === "connected", WAIT_MS);
  if (!isUp) throw new Error(JSON.stringify(mail(bench)));
};
/** Subjects of runs, in the order of their acceptance. */
const subjects = async ({ gateway }: GatewayBench): Promise<string[]> =>
  (await gateway.store.read(() => queryAll<{ action: string }>("SELECT action FROM runs ORDER BY seq"))).map(
    ({ action }) => /Subject: ([^\\]*)/.exec(action)?.[1] ?? action,
  );
const place = ({ gateway }: GatewayBench) =>
  gateway.store.read(() => queryOne<{ lastUid: number }>('SELECT last_uid AS "lastUid" FROM mail_positions'));
const runsOf = (bench: GatewayBench, count: number): Promise<boolean> =>
  eventually(async () => (await subjects(bench)).length >= count, WAIT_MS);
/** Proves that there are no other effects: a later mail is processed. */
const nothingElseComes = async (bench: GatewayBench, before: readonly string[]): Promise<void> => {
  await deliver(letter("last"));
  expect(await runsOf(bench, before.length + 1)).toBe(true);
  expect(await subjects(bench)).toEqual([...before, "Lamp last"]);
};

describe.skipIf(!hasDovecot)("hooks.mail", () => {
  test("runs a new mail at once, with sender, subject and text inside the boundary and its own session", async () => {
    await deliver(letter("old"));
    const bench = await startGateway(configured({ pollSeconds: 3600 }));
    await listens(bench);
    await deliver(letter(1));
    expect(await eventually(() => bench.prompts().length === 1, WAIT_MS)).toBe(true);
    const [prompt] = bench.prompts();
    expect(prompt).toContain("From: Ada <ada@example.org>");
    expect(prompt).toContain("Subject: Lamp 1\nPlease look.");
    const wrapped = prompt!.slice(prompt!.lastIndexOf("<<<EXTERNAL", prompt!.indexOf("From: Ada")));
    expect(wrapped).not.toContain("A mail came in.");
    const key = (await bench.gateway.store.read(() => queryOne<{ k: string }>("SELECT session_key AS k FROM runs")))?.k;
    expect(key).toBe("agent:main:hook:mail:<m-1@example.org>");
    expect(await subjects(bench)).toEqual(["Lamp 1"]); // earlier mails are not news
    expect(await counts(bench, { accepted: 1 })).toBe(true);
    expect(mail(bench)).toMatchObject({ account: "joe at 127.0.0.1", mailbox, state: "connected" });
  });

  test("marks no mail as read", async () => {
    const bench = await startGateway(configured());
    await listens(bench);
    const uid = await deliver(letter(1));
    expect(await runsOf(bench, 1)).toBe(true);
    const flags = await server.withClient(async (client) => {
      await client.mailboxOpen(mailbox);
      const found = await client.fetchOne(String(uid), { flags: true }, { uid: true });
      return found ? [...(found.flags ?? [])] : expect.unreachable();
    });
    expect(flags).not.toContain("\\Seen");
  });

  test("runs each of several mails once and in order, and a repeated mail not again", async () => {
    const bench = await startGateway(configured());
    await listens(bench);
    await server.withClient(async (client) => {
      for (const n of [1, 2, 2, 3]) await client.append(mailbox, letter(n));
    });
    expect(await runsOf(bench, 3)).toBe(true);
    await nothingElseComes(bench, ["Lamp 1", "Lamp 2", "Lamp 3"]);
    expect(await counts(bench, { accepted: 4, repeated: 1 })).toBe(true);
  });

  test("runs mails that arrived while the gateway was stopped once, at the next start", async () => {
    const forgetful = { idempotencyHours: 1e-7 }; // long after requests' keys expire
    const first = await startGateway(configured({}, forgetful));
    await listens(first);
    await deliver(letter(1));
    expect(await runsOf(first, 1)).toBe(true);
    await first.stop();
    await deliver(letter(2));
    await deliver(letter(3));
    const second = await startGateway(configured({}, forgetful), { folder: first.folder });
    expect(await runsOf(second, 3)).toBe(true);
    await nothingElseComes(second, ["Lamp 1", "Lamp 2", "Lamp 3"]);
  });

  test("runs mails that arrived while the server was away", async () => {
    const bench = await startGateway(configured());
    await listens(bench);
    await deliver(letter(1));
    expect(await runsOf(bench, 1)).toBe(true);
    await server.stop();
    expect(await eventually(() => mail(bench)?.state === "down", WAIT_MS)).toBe(true);
    expect(mail(bench)?.lastError?.message).toContain(`127.0.0.1:${server.port}`);
    await server.start();
    await deliver(letter(2));
    expect(await runsOf(bench, 2)).toBe(true);
    expect(await subjects(bench)).toEqual(["Lamp 1", "Lamp 2"]);
    expect(mail(bench)?.state).toBe("connected");
  });

  test("runs only new mails after the server renumbered them", async () => {
    const first = await startGateway(configured());
    await listens(first);
    await deliver(letter(1));
    await deliver("From: bob@example.org\r\nSubject: Lamp without id\r\n\r\nHello\r\n");
    expect(await runsOf(first, 2)).toBe(true);
    await first.stop();
    await deliver(letter("of last year"), new Date("2025-11-21T12:00:00Z")); // moved here from elsewhere
    await deliver(letter("of yesterday"), new Date(Date.now() - 86_400_000));
    await deliver(letter(2));
    server.admin("mailbox", "update", "-u", USER, "--uid-validity", "4711", mailbox);
    const second = await startGateway(configured(), { folder: first.folder });
    expect(await runsOf(second, 3)).toBe(true);
    await nothingElseComes(second, ["Lamp 1", "Lamp without id", "Lamp 2"]);
    expect(await counts(second, { repeated: 2 })).toBe(true);
  });

  test("keeps mails waiting while the queue is full, and then runs each", async () => {
    const gate = Promise.withResolvers<void>();
    const bench = await startGateway(configured({}, { queue: { max: 4, maxPerMapping: 1 } }), {
      script: () => ({ text: "done", until: gate.promise }),
    });
    await listens(bench);
    await server.withClient(async (client) => {
      for (const n of [1, 2, 3]) await client.append(mailbox, letter(n));
    });
    expect(await eventually(() => mail(bench)?.state === "waiting", WAIT_MS)).toBe(true);
    expect(mail(bench)?.waitsFor).toBe("the queue is full");
    expect(await subjects(bench)).toEqual(["Lamp 1"]);
    gate.resolve();
    const hasAll = async () => {
      pokeMail(bench);
      return (await subjects(bench)).length === 3;
    };
    expect(await eventually(hasAll, WAIT_MS)).toBe(true);
    expect(await subjects(bench)).toEqual(["Lamp 1", "Lamp 2", "Lamp 3"]);
  });

  test("keeps mails waiting without a mapping, and runs them once the preset is there", async () => {
    const bench = await startGateway(configured({}, { presets: [] }));
    await listens(bench);
    await deliver(letter(1));
    expect(await eventually(() => mail(bench)?.waitsFor?.includes("hooks.presets") ?? false, WAIT_MS)).toBe(true);
    bench.configure(configured());
    expect(await runsOf(bench, 1)).toBe(true);
  });

  test("reports a wrong password after one attempt, and applies a new one at once", async () => {
    const attempts = () => server.log().filter((line) => line.includes("auth failed")).length;
    const before = attempts();
    const bench = await startGateway(configured({ password: "wrong-password" }));
    expect(await eventually(() => mail(bench)?.state === "refused", WAIT_MS)).toBe(true);
    expect(mail(bench)?.lastError?.message).toBe(
      `127.0.0.1:${server.port} refuses the password of 'joe': Authentication failed.`,
    );
    expect(await eventually(async () => (await bench.events()).length === 1, WAIT_MS)).toBe(true);
    expect((await bench.events())[0]).toContain("The mailbox of joe at 127.0.0.1 cannot be watched: ");
    expect(await eventually(() => attempts() > before, WAIT_MS)).toBe(true); // its log is written later
    const { nextAttemptAt = 0, lastError } = mail(bench)!; // it is refused
    expect(nextAttemptAt - lastError!.at).toBe(60_000);
    expect(JSON.stringify(bench.logs)).not.toContain("wrong-password");
    bench.configure(configured());
    await listens(bench);
    expect(attempts()).toBe(before + 1);
    await deliver(letter(1));
    expect(await runsOf(bench, 2)).toBe(true);
    expect((await subjects(bench))[1]).toBe("Lamp 1");
  });

  test("restarts its listener with changed settings, and stops it when switched off", async () => {
    const bench = await startGateway(configured());
    await listens(bench);
    bench.configure(configured({ enabled: false }));
    expect(await eventually(() => mail(bench) === undefined, WAIT_MS)).toBe(true);
    await deliver(letter(1));
    bench.configure(configured({ includeBody: false }));
    expect(await runsOf(bench, 1)).toBe(true);
  });

  test("fetches only the needed part of a large HTML mail, and shows its text up to maxBytes", async () => {
    const bench = await startGateway(configured({ maxBytes: 100 }));
    await listens(bench);
    const html = `<html><style>p{}</style><p>Dear Joe, the <b>lamp</b> is dark.</p>${"<p>More and more.</p>".repeat(100)}</html>`;
    const attachment = `--b\r\nContent-Type: application/pdf\r\nContent-Transfer-Encoding: base64\r\n\r\n${"QUJD".repeat(500_000)}\r\n--b--\r\n`;
    const parts = `--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n${html}\r\n${attachment}`;
    await deliver(letter(1, parts, "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n"));
    expect(await eventually(() => bench.prompts().length === 1, WAIT_MS)).toBe(true);
    expect(bench.prompts()[0]).toContain("Dear Joe, the lamp is dark.");
    expect(bench.prompts()[0]).not.toContain("QUJD");
    expect(bench.prompts()[0]!.match(/More and more/g)!.length).toBeLessThan(6 + 20); // in the snippet, and in the body
    const session = () => server.log().findLast((line) => /body_bytes=\d{6,}/.test(line));
    await bench.stop();
    expect(await eventually(() => session() !== undefined, WAIT_MS)).toBe(true);
    expect(Number(/body_bytes=(\d+)/.exec(session()!)![1])).toBeLessThan(1_100_000);
  });

  test("gives up and reports a mail that the server cannot read, and runs the next one", async () => {
    const first = await startGateway(configured());
    await listens(first);
    await first.stop();
    await deliver(letter(1));
    server.spoil(mailbox);
    await deliver(letter(2));
    const bench = await startGateway(configured(), { folder: first.folder });
    const hasSecond = () => {
      pokeMail(bench);
      return bench.prompts().length === 1;
    };
    expect(await eventually(hasSecond, WAIT_MS)).toBe(true);
    expect(bench.prompts()[0]).toContain("Lamp 2");
    expect((await bench.events()).some((text) => text.includes("cannot be read from its server"))).toBe(true);
    expect(await counts(bench, { accepted: 1, refused: 1 })).toBe(true);
    expect(bench.logs.filter(({ msg }) => msg === "watching the mailbox failed").length).toBeLessThan(6);
  });

  test("reports a mail that its mapping refuses, and runs the next one", async () => {
    const presetSettings = {
      mail: { ...silently, missing: "error", messageTemplate: "{{ item.from }} {{ item.date }}" },
    };
    const bench = await startGateway(configured({}, { presetSettings }));
    await listens(bench);
    await deliver("From: bob@example.org\r\nSubject: no date\r\n\r\nx\r\n");
    await deliver(letter(2));
    expect(await eventually(() => bench.prompts().length === 1, WAIT_MS)).toBe(true);
    expect(
      await eventually(async () => (await bench.events()).some((text) => text.includes("does not take it")), WAIT_MS),
    ).toBe(true);
    expect(await counts(bench, { accepted: 1, refused: 1 })).toBe(true);
  });

  test("runs later mails while a transform fails on one, and that one once the transform is repaired", async () => {
    const bad = "if (item.subject === 'Lamp bad') throw new Error('no'); ";
    const transform = (code: string): string =>
      `export default ({ item }) => { ${code}return { message: "Subject: " + item.subject + "\\n" }; };`;
    const presetSettings = { mail: { ...silently, transform: { module: "mail.js" } } };
    const bench = await startGateway(configured({ pollSeconds: 3600 }, { presetSettings, transformsDir: "." }));
    writeFileSync(join(bench.folder, "mail.js"), transform(bad));
    await listens(bench);
    await deliver(letter("bad"));
    await deliver(letter(2));
    await deliver(letter(3));
    expect(await runsOf(bench, 2)).toBe(true);
    expect(await subjects(bench)).toEqual(["Lamp 2", "Lamp 3"]);
    const { lastUid = 0 } = (await place(bench)) ?? {};
    const uids = await server.withClient(async (client) => {
      const lock = await client.getMailboxLock(mailbox);
      try {
        return (await client.search({ all: true }, { uid: true })) || [];
      } finally {
        lock.release();
      }
    });
    expect(lastUid).toBeLessThan(uids[0]!); // after a crash it would be read again
    writeFileSync(join(bench.folder, "mail.js"), transform(""));
    pokeMail(bench);
    expect(await runsOf(bench, 3)).toBe(true);
    expect(await subjects(bench)).toEqual(["Lamp 2", "Lamp 3", "Lamp bad"]);
    expect(await counts(bench, { accepted: 3, repeated: 0 })).toBe(true);
    expect((await place(bench))?.lastUid).toBe(uids.at(-1)!);
  });

  test("gives up and reports a mail whose transform fails five times", async () => {
    const presetSettings = { mail: { ...silently, transform: { module: "mail.js" } } };
    const bench = await startGateway(configured({ pollSeconds: 3600 }, { presetSettings, transformsDir: "." }));
    writeFileSync(join(bench.folder, "mail.js"), "export default () => { throw new Error('no'); };");
    await listens(bench);
    await deliver(letter("bad"));
    const isGivenUp = async (): Promise<boolean> => {
      pokeMail(bench);
      return (mail(bench)?.mails.refused ?? 0) > 0;
    };
    expect(await eventually(isGivenUp, WAIT_MS)).toBe(true);
    expect((await bench.events()).some((text) => text.includes("does not take it"))).toBe(true);
    expect(bench.logs.filter(({ msg }) => msg === "a mail was postponed and will be handed over later").length).toBe(1);
  });
});
