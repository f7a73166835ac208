import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readDocument } from "../../../src/base/config/document.ts";
import { audit } from "../../../src/gateway/operate/audit.ts";
import type { AuditParts, Finding } from "../../../src/gateway/operate/report.ts";
import { makeSnapshot } from "../../../src/gateway/operate/snapshot.ts";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "hearth-audit-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const HOOKS = "enabled: true, token: '${HOOKS_TOKEN}', allowQueryToken: false";

function findingsOf(text: string, more: Partial<AuditParts> = {}): readonly Finding[] {
  const file = join(folder, "hearth.json5");
  writeFileSync(file, text, { mode: 0o600 });
  const document = readDocument(file, { HOOKS_TOKEN: "x".repeat(32) });
  const snapshot = makeSnapshot(document, { folder, apiKeys: [] });
  const list = audit({ document, snapshot, hostname: "127.0.0.1", channels: new Map(), ...more });
  return list.map((finding) => ({ ...finding, where: finding.where.replace(file, "") }));
}

/** `severity id key :line` of each finding. */
const findings = (text: string, more?: Partial<AuditParts>): string[] =>
  findingsOf(text, more).map(({ severity, id, key, where }) => `${severity} ${id} ${key} ${where}`);

const PROXY = "\ngateway: { trustedProxies: ['127.0.0.1'] }";

test("a proxy without a separate listener for the hooks or API keys is a finding", () => {
  expect(findings(`{ hooks: { ${HOOKS} },${PROXY} }`)).toEqual(["warn no-own-listener hooks.listen :1"]);
  expect(findings(`{ hooks: { ${HOOKS} },${PROXY} }`, { hasApiKeys: true })).toEqual([]);
  expect(findings(`{ hooks: { ${HOOKS}, listen: 'unix:/run/hooks.sock' },${PROXY} }`)).toEqual([]);
  expect(findings(`{ hooks: { token: 'x' },${PROXY} }`)).toEqual([]);
  expect(findings(`{ hooks: { ${HOOKS} } }`)).toEqual([]);
});

test("the socket folder named in the finding and the documentation is created by the systemd unit", async () => {
  const read = (path: string): Promise<string> => Bun.file(join(import.meta.dir, "../../..", path)).text();
  const [, made] = /^RuntimeDirectory=(\w+)$/m.exec(await read("packaging/hearth.service")) ?? [];
  const [{ message } = { message: "" }] = findingsOf(`{ hooks: { ${HOOKS} },${PROXY} }`);
  for (const text of [message, await read("docs/webhooks.md")]) expect(text).toContain(`unix:/run/${made}/hooks.sock`);
});

test("a listener that others reach without TLS is a finding", () => {
  const exposed = "warn exposed hooks.listen :2";
  expect(findings(`{ hooks: { ${HOOKS},\nlisten: '0.0.0.0:9000' } }`)).toEqual([exposed]);
  expect(findings(`{ hooks: { ${HOOKS},\nlisten: '0.0.0.0:9000' },${PROXY} }`)).toEqual([]);
  expect(findings(`{ hooks: { ${HOOKS},\nlisten: '[::1]:9000' } }`)).toEqual([]);
  expect(findings(`{ hooks: { ${HOOKS},\nlisten: ':9000' } }`)).toEqual([]);
});

test.each(["0.0.0.0/0", "::/0"])("gateway.trustedProxies: %s is a finding", (network) => {
  const text = `{ hooks: { ${HOOKS}, listen: ':9000' },\ngateway: { trustedProxies: ['10.0.0.0/8', '${network}'] } }`;
  expect(findings(text)).toEqual(["warn trusts-everyone gateway.trustedProxies[1] :2"]);
});

test("the last of repeated keys counts, and the repetition is a finding", () => {
  const text = `{ hooks: { ${HOOKS},\nstrict: true,\n'strict': false, rateLimit: { perSecond: 1 } },\n}`;
  expect(findings(text)).toEqual(["warn repeated-key strict :3"]);
  expect(findings(`{ hooks: { ${HOOKS}, tokens: [{ id: 'a', token: '\${HOOKS_TOKEN}x' }, { id: 'b', token: '\${HOOKS_TOKEN}y' }] } }`)).toEqual([]); // prettier-ignore
});

test("a repeated section that turns the hooks off is a finding", () => {
  expect(findings(`{ hooks: { ${HOOKS} },\nhooks: { enabled: false } }`)).toEqual(["warn repeated-key hooks :2"]);
});

test("a variable name with small letters or hyphens stays text and is a finding", () => {
  const odd = "'${hooks_token_of_the_second_sender}'";
  expect(findings(`{ hooks: { ${HOOKS}, tokens: [{ id: 'a', \ntoken: ${odd} }] } }`)).toEqual([
    "warn variable-spelling hooks.tokens[0].token :2",
    "info token-literal hooks.tokens[0].token :2",
  ]);
  expect(findings(`{ hooks: { ${HOOKS} }, channels: { slack: { \nbotToken: ${odd.replaceAll("_", "-")} } } }`)).toEqual(
    ["warn variable-spelling channels.slack.botToken :2"],
  );
});

test("an HMAC that does not cover the timestamp or id is a finding", () => {
  const signed = (more: string) =>
    findings(`{ hooks: { ${HOOKS}, mappings: [{ messageTemplate: 'x', deliver: false, match: { path: 'a' },
      auth: { scheme: 'hmac', secrets: '${"s".repeat(32)}', header: 'x-sig',
      ${more} } }] } }`);
  expect(signed("timestampHeader: 'x-time'")).toEqual([
    "warn timestamp-unsigned hooks.mappings[0].auth.timestampHeader :3",
  ]);
  expect(signed("timestampHeader: 'x-time', signedContent: '{timestamp}.{body}'")).toEqual([]);
  expect(signed("idHeader: 'x-id'")).toEqual(["warn id-unsigned hooks.mappings[0].auth.idHeader :3"]);
  expect(signed("idHeader: 'x-id', signedContent: '{id}.{body}'")).toEqual([]);
  expect(signed("idField: 'id'")).toEqual([]); // signed with the body
  expect(signed("")).toEqual(["info replayable hooks.mappings[0].auth :2"]);
  expect(signed("}, dedupeBody: true, transform: { module: 'x.ts'")).toEqual([]);
});
