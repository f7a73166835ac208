import { afterEach, beforeEach, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readDocument } from "../../../src/base/config/document.ts";
import { audit } from "../../../src/gateway/operate/audit.ts";
import { auditFiles } from "../../../src/gateway/operate/files.ts";
import { makeSnapshot } from "../../../src/gateway/operate/snapshot.ts";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "hearth-audit-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function load(mail: string, more = "presets: ['mail'],") {
  const file = join(folder, "hearth.json5");
  const text = `{ hooks: { enabled: true, token: '\${HOOKS_TOKEN}', allowQueryToken: false, ${more}\n mail: { ${mail} } } }`;
  writeFileSync(file, text, { mode: 0o600 });
  const document = readDocument(file, { HOOKS_TOKEN: "x".repeat(32), MAIL_PASSWORD: "p" });
  return { document, snapshot: makeSnapshot(document, { folder, apiKeys: [] }) };
}

const SLACK = { id: "slack", isConfigured: true, hasDefault: true, takes: () => true };
const CHANNELS = new Map([
  ["slack", SLACK],
  ["last", SLACK],
]);
const idsOf = (mail: string, more?: string): string[] =>
  audit({ ...load(mail, more), hostname: "127.0.0.1", channels: CHANNELS }).map(
    ({ id, severity }) => `${severity} ${id}`,
  );

const ACCOUNT = "host: 'imap.example.org', user: 'joe', ";
const FILE = `${ACCOUNT} passwordFile: 'password'`;

test("hooks.mail: risky settings are findings", () => {
  expect(idsOf(FILE)).toEqual([]);
  expect(idsOf("model: 'small'", "")).toEqual([]);
  expect(idsOf(`${ACCOUNT} password: 'p'`)).toEqual(["warn mail-password-literal"]);
  expect(idsOf(`${ACCOUNT} password: '\${MAIL_PASSWORD}'`)).toEqual([]);
  expect(idsOf(`${FILE}, secure: false`)).toEqual([]); // STARTTLS
  expect(idsOf(`${FILE}, secure: false, allowPlaintext: true`)).toEqual(["warn mail-plaintext"]);
  expect(idsOf(`${FILE}, enabled: false`)).toEqual(["info mail-off"]);
  expect(idsOf(FILE, "")).toEqual(["error mail-unmapped"]);
  expect(idsOf(FILE, "mappings: [{ match: { path: '/mail' }, messageTemplate: 'x' }],")).toEqual([]);
  expect(idsOf(`${FILE}, allowUnsafeExternalContent: true`)).toEqual(["warn unsafe-content"]);
});

test("hooks.mail.passwordFile: a missing, invalid or readable file is a finding", async () => {
  const path = join(folder, "password");
  const found = async () => {
    const { document, snapshot } = load(FILE);
    const findings = await auditFiles(snapshot, document);
    expect(findings.every(({ where }) => where === `${join(folder, "hearth.json5")}:2`)).toBe(true);
    return findings.map(({ id, message }) => `${id}: ${message}`);
  };
  expect(await found()).toEqual([`mail-password-missing: hooks.mail.passwordFile: '${path}': cannot be read: ENOENT`]);
  for (const [text, problem] of [
    ["", "expected one line"],
    ["a\nb\n", "expected one line"],
    ["x".repeat(5000), "expected at most 4096 bytes, got 5000"],
  ] as const) {
    writeFileSync(path, text);
    expect((await found())[0]).toContain(problem);
  }
  writeFileSync(path, "secret\n");
  chmodSync(path, 0o640);
  expect(await found()).toEqual([`mail-password-readable: others on this machine may read '${path}': chmod 600`]);
  chmodSync(path, 0o600);
  expect(await found()).toEqual([]);
  const { document, snapshot } = load(`${ACCOUNT} password: 'p'`);
  chmodSync(document.files[0]!, 0o644);
  expect((await auditFiles(snapshot, document)).map(({ id }) => id)).toEqual(["file-readable"]);
});

test.each([
  ["host: 'h'", ["hooks.mail.user: required", "hooks.mail.passwordFile: required"]],
  ["user: 'u', password: 'p'", ["hooks.mail.host: required"]],
  [`${FILE}, password: 'p'`, ["hooks.mail.passwordFile: either this or password"]],
  [`${FILE}, pasword: 'p'`, ["hooks.mail.pasword: unknown key"]],
  [`${FILE}, port: 0`, ["hooks.mail.port: "]],
  [`host: 'imap.example.org:993', user: 'joe', password: 'p'`, ["hooks.mail.host: expected the name"]],
  [`${FILE}, maxBytes: 1e9`, ["hooks.mail.maxBytes: "]],
  [`${FILE}, pollSeconds: 1`, ["hooks.mail.pollSeconds: "]],
])("hooks.mail: { %s } is refused with file, line and key", (mail, messages) => {
  for (const message of messages) expect(() => load(mail)).toThrow(message);
  expect(() => load(mail)).toThrow("hearth.json5:2: ");
});

test("hooks.mail: settings written by earlier setup tools still count", () => {
  const { snapshot } = load("allowUnsafeExternalContent: true, model: 'small', thinking: 'low'");
  expect(snapshot.hooks.mail).toMatchObject({ allowUnsafeExternalContent: true, model: "small", thinking: "low" });
});
