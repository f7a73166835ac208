/** Secrets of signatures, checked when the configuration is read. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readDocument } from "../../../src/base/config/document.ts";
import { audit } from "../../../src/gateway/operate/audit.ts";
import { makeSnapshot } from "../../../src/gateway/operate/snapshot.ts";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "hearth-secrets-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const HOOKS = "enabled: true, token: '${HOOKS_TOKEN}', allowQueryToken: false";

function load(text: string) {
  const file = join(folder, "hearth.json5");
  writeFileSync(file, text, { mode: 0o600 });
  const document = readDocument(file, { HOOKS_TOKEN: "x".repeat(32) });
  return { document, snapshot: makeSnapshot(document, { folder, apiKeys: [] }) };
}

/** The error of reading, without the folder; empty: valid. */
function problem(text: string): string {
  try {
    load(text);
    return "";
  } catch (error) {
    return (error as Error).message.replaceAll(`${folder}/`, "");
  }
}

const signed = (auth: string): string =>
  `{ hooks: { ${HOOKS}, mappings: [{ messageTemplate: 'x', match: { path: 'a' }, deliver: false,\nauth: {\n${auth} } }] } }`;
const bytes = (count: number): string => Buffer.alloc(count, 7).toString("base64");

const REFUSED = "no key of this signature scheme: expected";

describe("the configuration refuses, with file, line and key but without the value,", () => {
  test.each([
    "scheme: 'standard-webhooks', secrets: 'whsec_'",
    "scheme: 'standard-webhooks', secrets: 'whsec_A'",
    "scheme: 'standard-webhooks', secrets: 'whsec_not base64!'",
    "scheme: 'svix', secrets: 'whsec_AAAAA'",
    `scheme: 'svix', secrets: 'whpk_${bytes(31)}'`,
    `scheme: 'svix', secrets: 'whsk_${bytes(32)}'`,
    "scheme: 'discord', secrets: 'zz'",
    `scheme: 'discord', secrets: '${"0".repeat(62)}'`,
  ])("%s", (auth) => {
    expect(problem(signed(auth))).toStartWith(`hearth.json5:3: hooks.mappings[0].auth.secrets: ${REFUSED} `);
    const [, secret] = /secrets: '(?:wh\w+_)?([^']{2,})'/.exec(auth) ?? [];
    expect(secret !== undefined && secret !== "whsec_" && problem(signed(auth)).includes(secret)).toBe(false);
  });

  test("the invalid one of several secrets", () => {
    const secrets = `secrets: ['whsec_${bytes(24)}',\n{ value: 'whsec_?' }]`;
    expect(problem(signed(`scheme: 'svix', ${secrets}`))).toStartWith(
      `hearth.json5:4: hooks.mappings[0].auth.secrets[1]: ${REFUSED}`,
    );
  });

  test("an invalid secret for callbacks", () => {
    const callbacks = (secret: string) => problem(`{ hooks: { ${HOOKS}, callbacks: { secret: '${secret}' } } }`);
    expect(callbacks("not base64!")).toStartWith(`hearth.json5:1: hooks.callbacks.secret: ${REFUSED}`);
    expect(callbacks(`whpk_${bytes(32)}`)).toContain(REFUSED);
    expect(callbacks(`whsk_${bytes(32)}`)).toBe("");
    expect(callbacks(`whsec_${bytes(32)}`)).toBe("");
  });

  test("an empty secret of any scheme", () => {
    expect(problem(signed("scheme: 'github', secrets: ''"))).toContain("hooks.mappings[0].auth");
  });
});

test.each([
  `scheme: 'standard-webhooks', secrets: 'whsec_${bytes(32)}'`,
  `scheme: 'standard-webhooks', secrets: '${bytes(32)}'`,
  `scheme: 'svix', secrets: 'whpk_${bytes(32)}'`,
  `scheme: 'discord', secrets: '${"ab".repeat(32)}'`,
  `scheme: 'github', secrets: 'any text of enough characters'`,
])("%s is accepted without a finding", (auth) => {
  expect(problem(signed(auth))).toBe("");
  expect(findings(signed(auth))).toEqual([]);
});

const findings = (text: string): string[] =>
  audit({ ...load(text), hostname: "127.0.0.1", channels: new Map() }).map(
    ({ severity, id, key, where }) => `${severity} ${id} ${key} ${where.replace(`${folder}/`, "")}`,
  );

test("a short secret is the same kind of finding as a short token", () => {
  const short = "warn secret-short hooks.mappings[0].auth.secrets hearth.json5:3";
  expect(findings(signed("scheme: 'github', secrets: 's'"))).toEqual([short]);
  expect(findings(signed(`scheme: 'svix', secrets: 'whsec_${bytes(23)}'`))).toEqual([short]);
  expect(findings(signed("scheme: 'gitlab', secrets: 'a password'"))).toEqual([short]);
  const preset = `{ hooks: { ${HOOKS}, presets: ['github'],\npresetSettings: { github: { secrets: 's', deliver: false } } } }`;
  expect(findings(preset)).toEqual(["warn secret-short hooks.presetSettings.github.secrets hearth.json5:2"]);
});
