/** `hearth hooks mail` and the listener of a real server, against a real IMAP server. */
import { Database } from "bun:sqlite";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import JSON5 from "json5";
import { hasDovecot, PASSWORD, startDovecot, USER, type Dovecot } from "../gateway/hooks/mail/dovecot.ts";
import { testRng } from "../seed.ts";
import { eventually, runHearth, startHearth, type Hearth } from "./hearth.ts";
import { sitDownAt } from "./person.ts";

setDefaultTimeout(600_000); // 15 s alone
const WAIT_MS = 60_000;
const KILLS = 3;

let server: Dovecot;
beforeAll(async () => {
  if (hasDovecot) server = await startDovecot();
});
afterAll(() => server?.remove());

let home: string;
let hearth: Hearth | undefined;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "hearth-mail-"));
  mkdirSync(join(home, ".hearth"));
});
afterEach(async () => {
  await hearth?.stop();
  hearth = undefined;
  rmSync(home, { recursive: true, force: true });
});

const file = (name: string): string => join(home, ".hearth", name);
const read = (name: string): string => readFileSync(file(name), "utf8");
const modeOf = (name: string): number => statSync(file(name)).mode & 0o777;
const env = () => (hearth ? { HEARTH_HOST: new URL(hearth.url).host } : {});
const mail = (...args: string[]) => runHearth(["hooks", "mail", ...args], { home, env: env(), stdin: `${PASSWORD}\n` });
const here = () => ["--host", "127.0.0.1", "--port", `${server.tlsPort}`, "--ca-file", server.caFile];
const setup = (...more: string[]) => mail("setup", "--user", USER, ...here(), "--password-file", "-", ...more);
const health = async (): Promise<any> => (await fetch(`${hearth!.url}/health`)).json();
const mailHealth = async (): Promise<{ state: string } | undefined> => (await health()).gateway.mail;
const letter = (n: number | string): string =>
  `From: ada@example.org\r\nSubject: Lamp ${n}\r\nMessage-ID: <${n}@example.org>\r\n\r\nPlease look.\r\n`;

describe.skipIf(!hasDovecot)("hearth hooks mail", () => {
  test("setup writes a whole configuration that only its owner can read, and shows no secret", async () => {
    const { code, stdout, stderr } = await setup();
    expect([code, stderr]).toEqual([0, `logging in to 127.0.0.1:${server.tlsPort} as joe …\n`]);
    const settings = JSON5.parse(read("hearth.json5"));
    expect(settings).toEqual({
      gateway: { token: expect.stringMatching(/^[0-9a-f]{64}$/) },
      hooks: {
        enabled: true,
        token: expect.stringMatching(/^[0-9a-f]{64}$/),
        presets: ["mail"],
        mail: {
          user: USER,
          host: "127.0.0.1",
          port: server.tlsPort,
          caFile: server.caFile,
          passwordFile: "mail-password",
        },
      },
    });
    expect(read("mail-password")).toBe(`${PASSWORD}\n`);
    expect([modeOf("hearth.json5"), modeOf("mail-password"), existsSync(file("hearth.json5.bak"))]).toEqual([
      0o600,
      0o600,
      false,
    ]);
    for (const secret of [PASSWORD, settings.hooks.token, settings.gateway.token]) expect(stdout).not.toContain(secret);
    expect(stdout).toContain("New tokens: hooks.token, gateway.token\n");
    expect(settings.hooks.token).not.toBe(settings.gateway.token);
    expect((await runHearth(["hooks", "audit"], { home })).code).toBe(0);
  });

  test("setup keeps the file's settings and comments, and a copy of the old file", async () => {
    const text = `// ours
{
  hooks: {
    enabled: false, // not yet
    token: "a-hook-token-of-32-characters-xx",
    presets: ["github"],
    mail: { model: "small", host: "old.example.org", port: 1143, password: "old" }, // a model for mails
  },
  gateway: { token: "a-gateway-token-of-32-characters" },
}
`;
    writeFileSync(file("hearth.json5"), text, { mode: 0o644 });
    expect((await setup("--mailbox", "INBOX")).code).toBe(0);
    expect(read("hearth.json5.bak")).toBe(text);
    const lines = read("hearth.json5").split("\n");
    expect(lines.slice(0, 6)).toEqual([
      "// ours",
      "{",
      "  hooks: {",
      "    enabled: true, // not yet",
      '    token: "a-hook-token-of-32-characters-xx",',
      '    presets: ["github", "mail"],',
    ]);
    expect(lines[6]).toEndWith("}, // a model for mails");
    expect(JSON5.parse(read("hearth.json5")).hooks.mail).toEqual({
      model: "small",
      user: USER,
      host: "127.0.0.1",
      port: server.tlsPort,
      caFile: server.caFile,
      mailbox: "INBOX",
      passwordFile: "mail-password",
    });
    expect([modeOf("hearth.json5"), modeOf("hearth.json5.bak")]).toEqual([0o600, 0o600]);
    const before = read("hearth.json5");
    expect((await setup()).code).toBe(0);
    expect(read("hearth.json5")).toBe(before); // a second time nothing changes
  });

  test.each<[string, () => string[], string, string]>([
    ["a wrong password", () => ["--user", USER, ...here()], "wrong", "refuses the password of 'joe'"],
    ["no such mailbox", () => ["--user", USER, ...here(), "--mailbox", "No"], PASSWORD, "there is no mailbox 'No'"],
    ["a certificate of nobody", () => ["--user", USER, ...here().slice(0, 4)], PASSWORD, "--ca-file"],
    ["no server", () => ["--user", USER, "--host", "127.0.0.1", "--port", "1"], PASSWORD, "ECONNREFUSED"],
    ["no password", () => ["--user", USER, ...here()], "", "expected the password on standard input"],
    ["nobody to ask", () => [], PASSWORD, "--user is required where standard input is not a terminal"],
    ["an unknown provider", () => ["--user", "joe@example.org"], PASSWORD, "--host is required"],
    ["a port that is none", () => ["--user", USER, "--host", "h", "--port", "99999"], PASSWORD, "hooks.mail.port: "],
  ])("setup with %s: one line that says so, and nothing is written", async (_, args, password, message) => {
    const stdin = `${password}\n`;
    const { code, stderr } = await runHearth(["hooks", "mail", "setup", ...args(), "--password-file", "-"], {
      home,
      stdin,
    });
    expect(code).toBe(1);
    expect(stderr.trim().split("\n").at(-1)).toContain(message);
    expect([existsSync(file("hearth.json5")), existsSync(file("mail-password"))]).toEqual([false, false]);
  });

  test("setup does not change a configuration that has errors", async () => {
    const text = "{ hooks: { enabled: true, nonsense: 1 } }\n";
    writeFileSync(file("hearth.json5"), text);
    const { code, stderr } = await setup();
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`${file("hearth.json5")}:1: hooks.nonsense: unknown key`),
    ]);
    expect(read("hearth.json5")).toBe(text);
    expect(existsSync(file("mail-password"))).toBe(false);
  });

  test("setup asks a person at a terminal; the password is not shown", async () => {
    const person = sitDownAt(["hooks", "mail", "setup", ...here()], home, {});
    expect(await person.sees("Mail address: ")).toBe(true);
    person.child.terminal!.write(`${USER}\r`);
    expect(await person.sees("Password: ")).toBe(true);
    person.child.terminal!.write(`${PASSWORD}\r`);
    expect([await person.ended(), person.screen()]).toEqual([0, expect.stringMatching(/^Mailbox .+ works\./m)]);
    expect(person.screen()).not.toContain(PASSWORD);
    expect(read("mail-password")).toBe(`${PASSWORD}\n`);
  });

  test(`each mail becomes one run over ${KILLS} kills at random moments, and status and audit report the state`, async () => {
    await server.withClient((client) => client.mailboxCreate("Kill"));
    expect((await setup("--mailbox", "Kill")).code).toBe(0);
    const settings = JSON5.parse(read("hearth.json5"));
    settings.hooks.presetSettings = {
      mail: { action: "wake", wakeMode: "next-heartbeat", textTemplate: "{{ item.subject }}" },
    };
    settings.agents = { defaults: { heartbeat: { every: 0, target: "none" } } };
    writeFileSync(file("hearth.json5"), JSON.stringify(settings), { mode: 0o600 });
    const expectListening = async (): Promise<void> => {
      expect(await eventually(async () => (await mailHealth())?.state === "connected", WAIT_MS)).toBe(true);
      expect(JSON.parse((await mail("status", "--json")).stdout)).toMatchObject({ state: "connected" });
    };
    hearth = await startHearth({ home, isSteady: true });
    await expectListening();
    const rng = testRng("e2e/hooks-mail");
    let mails = 0;
    for (let kill = 0; kill < KILLS; kill++) {
      await server.withClient(async (client) => {
        for (let i = 0; i < 10; i++) await client.append("Kill", letter(mails++));
      });
      await Bun.sleep(rng.float() * 300);
      await hearth.stop(); // SIGKILL
      hearth = await startHearth({ home, isSteady: true });
    }
    const subjects = (): string[] => {
      using db = new Database(file("gateway.db"), { readonly: true });
      const rows = db.query<{ action: string }, []>("SELECT action FROM runs ORDER BY seq").all();
      return rows.map(({ action }) => JSON.parse(action).text[0].text);
    };
    expect(await eventually(() => subjects().length >= mails, WAIT_MS)).toBe(true);
    await server.deliver(letter("last"), { mailbox: "Kill" });
    expect(await eventually(() => subjects().at(-1) === "Lamp last", WAIT_MS)).toBe(true);
    expect(subjects()).toEqual([...Array.from({ length: mails }, (_, n) => `Lamp ${n}`), "Lamp last"]);

    const { stdout } = await mail("status");
    expect(stdout).toMatch(/^mailbox +Kill of joe at 127\.0\.0\.1\nstate +connected, since .*\nlast mail +.*\n/);
    expect(await mailHealth()).toMatchObject({ state: "connected" });
    expect(JSON.stringify(await health())).not.toContain("joe");
    const metrics = await (await fetch(`${hearth.url}/metrics`)).text();
    expect(metrics).toContain("hearth_mail_connected 1\n");
    expect(metrics).toMatch(/hearth_mails_total\{outcome="accepted"\} [1-9]/);
    expect(hearth.log().join("\n")).not.toContain(PASSWORD);
    expect(hearth.log().join("\n")).not.toContain("Lamp");

    writeFileSync(file("mail-password"), "wrong\n", { mode: 0o600 });
    await hearth.stop();
    hearth = await startHearth({ home, isSteady: true });
    expect(await eventually(async () => /^(down|refused)$/.test((await mailHealth())?.state ?? ""), WAIT_MS)).toBe(
      true,
    );
    expect((await runHearth(["hooks", "audit"], { home, env: env() })).stdout).toContain("mail-down");
    writeFileSync(file("mail-password"), `${PASSWORD}\n`, { mode: 0o600 });
    await expectListening(); // without a restart
  });
});
