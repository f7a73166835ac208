import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ChannelStanding } from "../../../src/gateway/channels/resolve.ts";
import { readDocument } from "../../../src/base/config/document.ts";
import { audit } from "../../../src/gateway/operate/audit.ts";
import { type AuditParts } from "../../../src/gateway/operate/report.ts";
import { auditFiles } from "../../../src/gateway/operate/files.ts";
import { auditConfiguration } from "../../../src/gateway/operate/findings.ts";
import { makeSnapshot } from "../../../src/gateway/operate/snapshot.ts";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "hearth-audit-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const SAFE = "enabled: true, token: '${HOOKS_TOKEN}', allowQueryToken: false";
const CHANNELS: AuditParts["channels"] = new Map<string, ChannelStanding>([
  ["slack", { id: "slack", isConfigured: true, hasDefault: true, takes: () => true }],
  ["telegram", { id: "telegram", isConfigured: true, hasDefault: false, takes: (to) => /^\d+$/.test(to) }],
  ["signal", { id: "signal", isConfigured: false, hasDefault: false, takes: () => false }],
  ["last", { id: "slack", isConfigured: true, hasDefault: true, takes: (to) => to !== "general" }],
]);

function load(text: string) {
  const file = join(folder, "hearth.json5");
  writeFileSync(file, text, { mode: 0o600 });
  const document = readDocument(file, { HOOKS_TOKEN: "x".repeat(32) });
  return { document, snapshot: makeSnapshot(document, { folder, apiKeys: [] }) };
}

const findings = (text: string, more: Partial<AuditParts> = {}) =>
  audit({ ...load(text), hostname: "127.0.0.1", channels: CHANNELS, ...more });

const mapping = (text: string) => `{ hooks: { ${SAFE}, mappings: [\n${text}] } }`;

const hmac = (form: string) =>
  `{ match: { path: 'a' }, messageTemplate: 'x', auth: { scheme: 'hmac', secrets: '\${HOOKS_TOKEN}', ${form} } }`;

test("a careful configuration has no findings", () => {
  const careful = "{ match: { path: 'a' }, messageTemplate: 'x' }, { match: { path: 'b' }, messageTemplate: 'x' }";
  expect(findings(mapping(careful))).toEqual([]);
});

test("a configuration with the hooks off has no findings", () => {
  expect(findings("{ hooks: { token: 'x' } }")).toEqual([]);
});

describe("a finding names key, line and remedy", () => {
  test.each([
    ["{ hooks: { enabled: true, token: 'short' } }", "token-short", "warn", "hooks.token"],
    [`{ hooks: { enabled: true, token: '${"x".repeat(30)}' } }`, "token-literal", "info", "hooks.token"],
    ["{ hooks: { enabled: true, token: '${HOOKS_TOKEN}' } }", "query-token", "info", "hooks.allowQueryToken"],
    [
      mapping("{ allowUnsafeExternalContent: true }"),
      "unsafe-content",
      "warn",
      "hooks.mappings[0].allowUnsafeExternalContent",
    ],
    [
      mapping(hmac("header: 'x-sig', signedContent: '{id}.{bdy}'")),
      "signed-unknown",
      "warn",
      "hooks.mappings[0].auth.signedContent",
    ],
    [
      mapping(hmac("header: 'x-sig', signedContent: '{timestamp}', timestampHeader: 'x-time'")),
      "body-unsigned",
      "error",
      "hooks.mappings[0].auth.signedContent",
    ],
    [
      mapping(hmac("header: 'x', signedContent: '{timestamp}.{body}'")),
      "signed-nowhere",
      "warn",
      "hooks.mappings[0].auth.signedContent",
    ],
    [
      mapping(hmac("signatureField: 's', idField: 'token', signedContent: '{id}'")),
      "body-unsigned",
      "warn",
      "hooks.mappings[0].auth.signedContent",
    ],
    [mapping(hmac("header: ['x', 'y z']")), "header-impossible", "error", "hooks.mappings[0].auth.header"],
    [mapping(hmac("header: 'x sig'")), "header-impossible", "error", "hooks.mappings[0].auth.header"],
    [mapping(hmac("header: 'x', idHeader: 'id:'")), "header-impossible", "error", "hooks.mappings[0].auth.idHeader"],
    [
      `{ hooks: { ${SAFE}, presetSettings: { github: { secrets: '\${HOOKS_TOKEN}' } } } }`,
      "preset-unused",
      "warn",
      "hooks.presetSettings.github",
    ],
    ...["http://a.example/x", "ftp://a.example", "https://10.0.0.1/", "https://me:pw@a.example/"].map(
      (url): [string, string, string, string] => [
        mapping(`{ match: { path: 'a' }, messageTemplate: 'x', callbackUrl: '${url}' }`),
        "callback-impossible",
        "error",
        "hooks.mappings[0].callbackUrl",
      ],
    ),
    [
      mapping("{ messageTemplate: 'x {{ headers.Authorization }}' }"),
      "credential-template",
      "warn",
      "hooks.mappings[0].messageTemplate",
    ],
    [
      mapping("{ name: '{{headers.x-hub-signature-256}}', auth: { scheme: 'github', secrets: 's' } }"),
      "credential-template",
      "warn",
      "hooks.mappings[0].name",
    ],
    [
      mapping("{ messageTemplate: '{{ headers[\"X-Api-Key\"] }}' }"),
      "credential-template",
      "warn",
      "hooks.mappings[0].messageTemplate",
    ],
    [mapping("{ messageTemplate: 'Build {{ payload.x ' }"), "mapping-disabled", "error", "hooks.mappings[0]"],
    [mapping("{ messageTemplate: '{{ heders.x }}' }"), "template-root", "warn", "hooks.mappings[0].messageTemplate"],
    [mapping("{ to: '{{ item.x }} {{ payloads[0] }}' }"), "template-root", "warn", "hooks.mappings[0].to"],
    [
      mapping("{ messageTemplate: 'x', match: { when: { not: { all: [{ at: 'header.x', exists: true }] } } } }"),
      "template-root",
      "warn",
      "hooks.mappings[0].match.when",
    ],
    [mapping("{ messageTemplate: 'x { payload.x }}' }"), "template-brace", "warn", "hooks.mappings[0].messageTemplate"],
    [
      mapping("{ messageTemplate: 'x', match: { path: '/hooks/build' } }"),
      "path-repeated",
      "warn",
      "hooks.mappings[0].match.path",
    ],
    [mapping("{ messageTemplate: '{{ x | shout }}' }"), "mapping-disabled", "error", "hooks.mappings[0]"],
    [mapping("{ match: { when: { at: 'x', matches: '(' } } }"), "mapping-disabled", "error", "hooks.mappings[0]"],
    [`{ hooks: { ${SAFE}, presets: ['github'] } }`, "preset-unsigned", "warn", "hooks.presetSettings.github.secrets"],
    [
      `{ hooks: { ${SAFE}, presets: ['generic'], presetSettings: { generic: { allowUnsafeExternalContent: true } } } }`,
      "unsafe-content",
      "warn",
      "hooks.presetSettings.generic.allowUnsafeExternalContent",
    ],
    [
      `{ hooks: { ${SAFE}, presets: ['mail'], mail: { allowUnsafeExternalContent: true } } }`,
      "unsafe-content",
      "warn",
      "hooks.mail.allowUnsafeExternalContent",
    ],
    [
      `{ hooks: { ${SAFE}, presets: ['mail'], mail: { thinking: 'very' }, presetSettings: { mail: { name: 'M' } } } }`,
      "thinking-unknown",
      "warn",
      "hooks.mail.thinking",
    ],
    [
      `{ hooks: { ${SAFE}, presets: ['mail'], mail: { thinking: 'low' }, presetSettings: { mail: { thinking: 'x' } } } }`,
      "thinking-unknown",
      "warn",
      "hooks.presetSettings.mail.thinking",
    ],
    [
      `{ hooks: { ${SAFE}, presets: ['generic'], presetSettings: { generic: { channel: 'telegram' } } } }`,
      "no-recipient",
      "warn",
      "hooks.presetSettings.generic.channel",
    ],
    [
      `{ hooks: { ${SAFE}, presets: ['generic'], mappings: [{ id: 'all' }] } }`,
      "shadowed",
      "warn",
      "hooks.presetSettings.generic.match",
    ],
    [mapping("{ match: { path: 'my path' } }"), "path-never-asked", "error", "hooks.mappings[0].match"],
    [mapping("{ channel: 'pigeon' }"), "unknown-channel", "error", "hooks.mappings[0].channel"],
    [mapping("{ channel: 'signal' }"), "channel-not-configured", "error", "hooks.mappings[0].channel"],
    [mapping("{ channel: 'telegram' }"), "no-recipient", "warn", "hooks.mappings[0].channel"],
    [mapping("{ channel: 'telegram', to: 'ann' }"), "bad-recipient", "error", "hooks.mappings[0].to"],
    [mapping("{ fallbackChannels: ['pigeon'] }"), "unknown-channel", "error", "hooks.mappings[0].fallbackChannels[0]"],
    [
      `{ hooks: { ${SAFE}, fallbackChannels: ['last', 'signal'] } }`,
      "channel-not-configured",
      "error",
      "hooks.fallbackChannels[1]",
    ],
    [
      `{ agents: { defaults: { heartbeat: { every: 0 } } }, hooks: { ${SAFE}, mappings: [{ action: 'wake', wakeMode: 'next-heartbeat' }] } }`,
      "heartbeat-off",
      "warn",
      "agents.defaults.heartbeat.every",
    ],
    [mapping("{ match: { path: '/wake/' } }"), "reserved-path", "error", "hooks.mappings[0].match"],
    [mapping("{ id: 'all' }, { match: { path: 'b' } }"), "shadowed", "warn", "hooks.mappings[1].match"],
    [
      mapping("{ match: { path: 'b/' } }, { match: { path: '/b', source: 's' } }"),
      "shadowed",
      "warn",
      "hooks.mappings[1].match",
    ],
    [mapping("{ thinking: 'very' }"), "thinking-unknown", "warn", "hooks.mappings[0].thinking"],
    [mapping("{ match: { path: 'a' } }"), "no-text", "error", "hooks.mappings[0].messageTemplate"],
    [mapping("{ action: 'wake', messageTemplate: 'x' }"), "no-text", "error", "hooks.mappings[0].textTemplate"],
    [mapping("{ agentId: 'nobody' }"), "agent-not-allowed", "error", "hooks.mappings[0].agentId"],
    [
      `{ hooks: { ${SAFE}, allowedAgentIds: ['a'], presets: ['generic'] }, agents: { list: [{ id: 'a' }] } }`,
      "agent-not-allowed",
      "error",
      "hooks.presetSettings.generic.agentId",
    ],
    [mapping("{ tools: ['shell'] }"), "mapping-disabled", "error", "hooks.mappings[0]"],
    [mapping("{ tools: ['current_time'] }"), "tools", "info", "hooks.mappings[0].tools"],
    [
      `{ agents: { defaults: { models: { a: { alias: 'Fast' } } } }, hooks: { ${SAFE}, mappings: [{ model: 'b' }] } }`,
      "model-not-allowed",
      "error",
      "hooks.mappings[0].model",
    ],
    [`{ hooks: { ${SAFE}, callbacks: { allowFromRequest: true } } }`, "callback-unsigned", "warn", "hooks.callbacks"],
    [`{ agents: { list: [{ id: 'a' }] }, hooks: { ${SAFE} } }`, "agents-unrestricted", "info", "hooks.allowedAgentIds"],
  ])("%s", (text, id, severity, key) => {
    const found = findings(text).find((finding) => finding.id === id);
    expect(found).toMatchObject({ severity: severity as never, key });
    expect(found?.where).toMatch(/hearth\.json5:\d+$/);
    expect(found!.message.length).toBeGreaterThan(10);
  });

  test.each([
    [
      mapping("{ match: { path: 'a', when: { at: 'payload.x', exists: true } } }, { match: { path: 'a' } }"),
      "shadowed",
    ],
    [mapping("{ match: { source: 's' } }, { match: { path: 'a' } }"), "shadowed"],
    [mapping("{ channel: 'telegram', to: '1' }"), "no-recipient"],
    [mapping("{ channel: 'telegram', deliver: false }"), "no-recipient"],
    [mapping("{ channel: 'telegram', to: '1' }"), "bad-recipient"],
    [mapping("{ channel: 'telegram', to: '{{payload.to}}' }"), "bad-recipient"],
    [mapping("{}"), "no-recipient"],
    [mapping("{ model: '{{payload.model}}' }"), "model-not-allowed"],
    [mapping("{ transform: { module: 'x.ts' } }"), "no-text"],
    [mapping("{ action: 'wake', textTemplate: 'x' }"), "no-text"],
    [`{ hooks: { ${SAFE}, presets: ['generic'] } }`, "no-text"],
    [`{ hooks: { ${SAFE}, allowedAgentIds: [], mappings: [{ action: 'wake' }] } }`, "agent-not-allowed"],
    [mapping("{ thinking: '{{payload.level}}' }, { thinking: 'Med' }"), "thinking-unknown"],
    [
      `{ agents: { defaults: { models: { a: { alias: 'Fast' } } } }, hooks: { ${SAFE}, mappings: [{ model: 'fast' }] } }`,
      "model-not-allowed",
    ],
  ])("%s has no finding %s", (text, id) => {
    expect(findings(text).map((finding) => finding.id)).not.toContain(id);
  });

  test("replies without a channel and an exposed server are findings", () => {
    const ids = findings(mapping("{ messageTemplate: 'x' }"), { channels: new Map(), hostname: "0.0.0.0" }).map(
      (finding) => finding.id,
    );
    expect(ids).toEqual(["exposed", "no-channel"]);
  });

  test("the default channel without a recipient is a finding, unless the heartbeat names a recipient", () => {
    const telegram = CHANNELS.get("telegram")!;
    const recipients = (more: string) =>
      findings(`{ hooks: { ${SAFE} } ${more} }`, { channels: new Map([...CHANNELS, ["last", telegram]]) }).flatMap(
        ({ id, key }) => (id === "no-recipient" ? [key] : []),
      );
    const heartbeat = (text: string) => `, agents: { defaults: { heartbeat: ${text} } }`;
    expect(recipients("")).toEqual(["channels.telegram.defaultTo"]);
    expect(recipients(heartbeat("{ target: 'slack' }"))).toEqual(["channels.telegram.defaultTo"]);
    expect(recipients(heartbeat("{ target: 'telegram', to: '1' }"))).toEqual([]);
    expect(recipients(heartbeat("{ target: 'none', to: '1' }"))).toEqual(["channels.telegram.defaultTo"]);
  });

  test.each([
    ["target: 'slak'", "unknown-channel", "error", "target"],
    ["target: 'signal'", "channel-not-configured", "error", "target"],
    ["target: 'telegram'", "no-recipient", "warn", "target"],
    ["target: 'telegram', to: 'ann'", "bad-recipient", "error", "to"],
    ["target: 'last', to: 'general'", "bad-recipient", "warn", "to"],
    ["target: 'none', to: 'general'", undefined, undefined, undefined],
    ["target: 'Slack'", undefined, undefined, undefined],
    ["model: 'b'", "model-not-allowed", "error", "model"],
    ["model: 'fast'", undefined, undefined, undefined],
    ["model: 'a:latest'", undefined, undefined, undefined],
  ] as const)("a heartbeat with %s is audited", (settings, id, severity, key) => {
    const defaults = `models: { a: { alias: 'Fast' } }, heartbeat: { ${settings} }`;
    const found = findings(`{ hooks: { ${SAFE} }, agents: { defaults: { ${defaults} } } }`);
    const expected = id && { id, severity, key: `agents.defaults.heartbeat.${key}` };
    expect(found).toMatchObject(expected ? [expected] : []);
    expect(found).toHaveLength(expected ? 1 : 0);
  });

  test("the channel `last` follows the configured channels and their order", async () => {
    const idsOf = async (channels: string, mappings = "") => {
      const text = `{ hooks: { enabled: true, token: '${"x".repeat(32)}', ${mappings} }, channels: { ${channels} } }`;
      const [config] = load(text).document.files;
      const found = await auditConfiguration({ env: {}, flags: { config }, home: folder });
      return found?.map(({ id, severity }) => `${severity} ${id}`);
    };
    const telegram = "telegram: { botToken: '1:a' }";
    expect(await idsOf(telegram)).toContain("warn no-recipient");
    expect(await idsOf(`${telegram}, slack: { botToken: 'xoxb-1', defaultTo: 'C0123456' }`)).not.toContain(
      "warn no-recipient",
    );
    const own = "presets: ['alertmanager'], presetSettings: { alertmanager: { channel: 'telegram', to: '42' } }";
    expect(await idsOf(telegram, own)).toContain("info no-recipient"); // every message has a recipient of its own
    const wake = "mappings: [{ match: { path: 'a' }, action: 'wake', textTemplate: 'x' }]";
    expect(await idsOf(telegram, `${own}, ${wake}`)).toContain("warn no-recipient");
  });

  test("a section of tool servers that a start would refuse is a finding", async () => {
    const [config] = load("{ mcp: { servers: { a: { command: 'x',\n url: 'http://y' } } } }").document.files;
    const found = await auditConfiguration({ env: {}, flags: { config }, home: folder });
    const message = expect.stringContaining(":1: mcp.servers.a: expected either 'command' or 'url'");
    expect(found).toEqual([expect.objectContaining({ id: "invalid", severity: "error", message })]);
  });

  test.skipIf(process.platform === "win32")("a token file that others can read is a finding", async () => {
    const files = [
      ["telegram-token", 0o644, "1:a"],
      ["slack-token", 0o600, "xoxb-1"],
    ] as const;
    for (const [name, mode, text] of files) {
      writeFileSync(join(folder, name), text);
      chmodSync(join(folder, name), mode);
    }
    const channels = "telegram: { tokenFile: 'telegram-token' }, slack: { tokenFile: 'slack-token' }";
    const [config] = load(`{ hooks: { ${SAFE} }, channels: { ${channels} } }`).document.files;
    const env = { HOOKS_TOKEN: "x".repeat(32) };
    const found = await auditConfiguration({ env, flags: { config }, home: folder });
    expect(found?.filter(({ id }) => id === "secret-readable").map(({ key }) => key)).toEqual([
      "channels.telegram.tokenFile",
    ]);
  });

  test("a preset whose replies have no channel is a finding", () => {
    const none = { channels: new Map() };
    const settings = (text: string) =>
      `{ hooks: { ${SAFE}, presets: ['generic'], presetSettings: { generic: ${text} } } }`;
    const found = findings(settings("{}"), none);
    expect(found.map(({ id, key }) => [id, key])).toEqual([["no-channel", "hooks.presetSettings.generic.channel"]]);
    expect(findings(settings("{ deliver: false }"), none)).toEqual([]);
  });

  test("the worst findings come first, and no finding shows a token", async () => {
    const text =
      "{ hooks: { enabled: true, token: 'sesame', transformsDir: 'x', mappings: [{ messageTemplate: 'x', channel: 'pigeon' }] } }";
    const [config] = load(text).document.files;
    chmodSync(config!, 0o644);
    const list = await auditConfiguration({ env: {}, flags: { config }, home: folder });
    expect(list?.map(({ id, severity }) => `${severity} ${id}`)).toEqual([
      "error unknown-channel",
      "error transforms-missing",
      "warn token-short",
      "warn file-readable",
      "info token-literal",
      "info query-token",
    ]);
    expect(list?.[0]?.message).toStartWith("no channel 'pigeon'; known: last, ");
    expect(JSON.stringify(list)).not.toContain("sesame");
  });
});

describe("the audit of files", () => {
  const idsOf = async (text: string, mode = 0o600) => {
    const { document, snapshot } = load(text);
    chmodSync(document.files[0]!, mode);
    return (await auditFiles(snapshot, document)).map((finding) => finding.id);
  };

  test("reports a configuration that everyone may read or change", async () => {
    expect(await idsOf("{ hooks: { token: 'secret' } }")).toEqual([]);
    expect(await idsOf("{ hooks: { token: 'secret' } }", 0o644)).toEqual(["file-readable"]);
    expect(await idsOf("{ hooks: { token: '${HOOKS_TOKEN}' } }", 0o644)).toEqual([]);
    expect(await idsOf("{ hooks: { token: 'secret' } }", 0o666)).toEqual(["file-writable"]);
  });

  test.each([
    "gateway: { token: 'sesame' }",
    "hooks: { tokens: [{ id: 'a', token: 'sesame' }] }",
    "hooks: { presets: ['github'], presetSettings: { github: { secrets: ['${HOOKS_TOKEN}', { value: 'sesame' }] } } }",
    "hooks: { mappings: [{ auth: { scheme: 'github', secrets: 'sesame' } }] }",
    "hooks: { callbacks: { secret: 'sesame' } }",
    "channels: { slack: { botToken: 'xoxb-1' } }",
    "database: { url: 'postgres://u:sesame@h/db' }",
    "database: { url: 'postgres://h/db?user=u&password=sesame' }",
  ])("reports readable secrets: %s", async (settings) => {
    expect(await idsOf(`{ ${settings} }`, 0o644)).toEqual(["file-readable"]);
  });

  test.each([
    "gateway: { token: '${HOOKS_TOKEN}' }, hooks: { token: '${HOOKS_TOKEN}' }",
    "hooks: { presets: ['github'], presetSettings: { github: { secrets: ['${HOOKS_TOKEN}'] } } }",
    `hooks: { mappings: [{ auth: { scheme: 'discord', secrets: '${"0f".repeat(32)}' }, sessionKey: 'a' }] }`,
    "channels: { telegram: { tokenFile: 'telegram-token' } }",
    "database: { url: 'postgres://u@h/db' }",
    "database: { url: 'postgres://u:${HOOKS_TOKEN}@h/db' }",
  ])("reports no file without secrets: %s", async (settings) => {
    expect(await idsOf(`{ ${settings} }`, 0o644)).toEqual([]);
  });

  test("reports a folder of transforms that is missing or that everyone may write to", async () => {
    const text = "{ hooks: { transformsDir: 'transforms' } }";
    expect(await idsOf(text)).toEqual(["transforms-missing"]);
    mkdirSync(join(folder, "transforms"));
    expect(await idsOf(text)).toEqual([]);
    chmodSync(join(folder, "transforms"), 0o777);
    expect(await idsOf(text)).toEqual(["transforms-writable"]);
  });

  test("reports a transform that is missing, outside of the folder, or fails to load", async () => {
    mkdirSync(join(folder, "hooks/transforms"), { recursive: true });
    const using = (module: string) => mapping(`{ transform: { module: '${module}' } }`);
    writeFileSync(join(folder, "hooks/transforms/good.ts"), "export default () => null;");
    writeFileSync(join(folder, "hooks/transforms/bad.ts"), "throw new Error('at load');");
    expect(await idsOf(using("good.ts"))).toEqual([]);
    for (const module of ["bad.ts", "nowhere.ts", "../../hearth.json5"]) {
      expect(await idsOf(using(module))).toEqual(["transform-broken"]);
    }
  });
});
