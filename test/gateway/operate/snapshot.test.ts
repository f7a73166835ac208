import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeLogger } from "../../../src/base/log.ts";
import { readDocument } from "../../../src/base/config/document.ts";
import { makeSnapshot } from "../../../src/gateway/operate/snapshot.ts";
import { ConfigWatch } from "../../../src/gateway/operate/watch.ts";
import { eventually } from "../../e2e/hearth.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "hearth-gateway-"));
  file = join(folder, "hearth.json5");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const read = () => {
  const document = readDocument(file, {});
  return { document, snapshot: makeSnapshot(document, { folder, apiKeys: ["laptop:api-secret"] }) };
};

function snapshotOf(text: string) {
  writeFileSync(file, text);
  return read().snapshot;
}

test("without a file the gateway is off", () => {
  expect(makeSnapshot(undefined, { folder, apiKeys: [] }).hooks.enabled).toBe(false);
});

test("paths are normalized to one leading slash and no trailing one", () => {
  expect(snapshotOf("{ hooks: { path: ' hooks/in/// ' } }").hooks.path).toBe("/hooks/in");
});

test("a snapshot cannot be changed", () => {
  const { hooks } = snapshotOf("{ hooks: { mappings: [{ id: 'a' }] } }");
  expect(() => ((hooks.mappings[0] as { id: string }).id = "b")).toThrow();
});

describe("the start is refused, with key and line, for", () => {
  test.each([
    ["{\n hooks: { enabled: true } }", ":2: hooks.token: required when hooks.enabled is true"],
    [
      "{ agents: { list: [{ id: 'a' },\n { id: 'b' }, { id: 'a' }] } }",
      ":2: agents.list[2].id: is the id of an earlier",
    ],
    ["{ session: { compactAt: 70 } }", "session.compactAt: expected a number from 0.1 up to 0.95, got 70"],
    ["{ hooks: { enabled: true, token: '  ' } }", ":1: hooks.token: "],
    [
      "{ gateway: { token: 'same' },\n hooks: { enabled: true, token: 'same' } }",
      ":2: hooks.token: must not be the same as gateway.token",
    ],
    ["{ hooks: { enabled: true, token: 'api-secret' } }", "hooks.token: must not be a key of the model API"],
    ["{ hooks: { enabled: true, token: 't', path: '/' } }", "hooks.path: must not be '/'"],
    ["{ hooks: { enabled: true, token: 't', path: 'api/x' } }", "hooks.path: '/api' is taken"],
    ["{ hooks: { enabled: true, token: 't', path: '/ui' } }", "hooks.path: '/ui' is taken"],
    ["{ hooks: { enabled: true, token: 't', path: '/my hooks' } }", "hooks.path: no request has this path: written so"],
    ["{ hooks: { enabled: true, token: 't', path: 'h\u00f6\u00f6ks' } }", "it arrives as '/h%C3%B6%C3%B6ks'"],
    ["{ hooks: { enabled: true, token: 't', path: '/a?b' } }", "it arrives as '/a'"],
    ["{ hooks: {\n tokn: 1 } }", ":2: hooks.tokn: unknown key"],
    ["{ channels: { telegram: { botToken: 'a',\n tokne: 1 } } }", ":2: channels.telegram.tokne: unknown key"],
    ["{ hooks: {\n tokn: 1 } }", ":2: hooks.tokn: unknown key; did you mean 'token'?"],
    ["{ hooks: {\n enabeld: true } }", ":2: hooks.enabeld: unknown key; did you mean 'enabled'?"],
    ["{ hooks: { zebra: 1 } }", /hooks\.zebra: unknown key$/],
    [
      "{ channels: { telegram: { botTokn: 'a' } } }",
      "channels.telegram.botTokn: unknown key; did you mean 'botToken'?",
    ],
    ["{ hooks: { mappings: [{ matsch: 1 }] } }", "hooks.mappings[0].matsch: unknown key; did you mean 'match'?"],
    ["{ agents: { list: [{ id: 'a', modle: 'x' }] } }", "agents.list[0].modle: unknown key; did you mean 'model'?"],
    ["{ hooks: { gmail: {} } }", "hooks.gmail: unknown key; here it is hooks.mail"],
    ["{ hooks: { presets: ['gmail'] } }", "hooks.presets[0]: here it is 'mail'"],
    ["{ hooks: { allowRequestSessionKey: true } }", "here it is hooks.sessionKeys.allowFromRequest"],
    ["{ hooks: { defaultSessionKey: 'x' } }", "here it is hooks.sessionKeys.default"],
    ["{ hooks: { allowedSessionKeyPrefixes: [] } }", "here it is hooks.sessionKeys.prefixes"],
    ["{ hooks: { mappings: [{ signature: {} }] } }", "hooks.mappings[0].signature: unknown key; here it is auth"],
    ["{ channels: { pigeon: {} } }", ":1: channels.pigeon: unknown channel: expected one of whatsapp, telegram"],
    ["{ hooks: { mappings: [{},\n { matsch: 1 }] } }", ":2: hooks.mappings[1].matsch: unknown key"],
    [
      "{ hooks: { enabled: true, token: 't', mappings: [{ id: 'a' },\n{ id: 'a' }] } }",
      ":2: hooks.mappings[1].id: is the id",
    ],
    [
      "{ agents: { defaults: { heartbeat: { every: 'soon' } } } }",
      "agents.defaults.heartbeat.every: expected a duration",
    ],
    ["{ hooks: { presets: ['gopher'] } }", "hooks.presets[0]: "],
  ])("%j", (text, message) => {
    expect(() => snapshotOf(text)).toThrow(message);
  });

  test("several problems, which are reported at once without values", () => {
    const text = "{ hooks: { enabled: 'sesame', token: 5, a: 1, mappings: 'sesame' } }";
    const failure = (() => {
      try {
        return String(snapshotOf(text));
      } catch (error) {
        return String(error);
      }
    })();
    expect(failure.split("\n").length).toBe(4);
    expect(failure).not.toContain("sesame");
  });
});

describe("watching the configuration", () => {
  let watch: ConfigWatch | undefined;
  const logs: Record<string, any>[] = [];
  const log = makeLogger({ write: (line) => void logs.push(JSON.parse(line)), now: Date.now, debug: false });
  afterEach(() => {
    watch?.close();
    logs.length = 0;
  });

  const start = (text: string): ConfigWatch => {
    writeFileSync(file, text);
    return (watch = new ConfigWatch({ first: read(), read, log }));
  };

  test("replaces the snapshot after a valid change, and leaves the old snapshot unchanged", async () => {
    const config = start("{ hooks: { enabled: true, token: 'one' }, maxQueue: 1 }");
    const before = config.snapshot();
    let changes = 0;
    config.onChange(() => changes++);
    writeFileSync(file, "{ hooks: { enabled: true, token: 'two' }, maxQueue: 2 }");
    expect(await eventually(() => config.snapshot().hooks.token === "two")).toBe(true);
    expect([before.hooks.token, changes]).toEqual(["one", 1]);
    expect(logs.map((line) => [line["msg"], line["changed"] ?? line["settings"]])).toEqual([
      ["configuration reloaded", ["hooks", "maxQueue"]],
      ["these settings need a restart", ["maxQueue"]],
    ]);
  });

  test("keeps the last valid snapshot after an invalid change, and logs one line with its place", async () => {
    const config = start("{ hooks: { enabled: true, token: 'one' } }");
    writeFileSync(file, "{ hooks: {\n enabled: true } }");
    expect(await eventually(() => logs.length > 0)).toBe(true);
    expect(config.snapshot().hooks.token).toBe("one");
    expect(logs[0]).toMatchObject({
      level: "error",
      error: `${file}:1: hooks.token: required when hooks.enabled is true`,
    });
    writeFileSync(file, "{ hooks: { enabled: true, token: 'three' } }");
    expect(await eventually(() => config.snapshot().hooks.token === "three")).toBe(true);
  });

  test("includes included files, also those that a change adds", async () => {
    const token = join(folder, "token.json5");
    writeFileSync(token, "'one'");
    const config = start("{ hooks: { enabled: true, token: 'zero' } }");
    writeFileSync(file, "{ hooks: { enabled: true, token: { $include: 'token.json5' } } }");
    expect(await eventually(() => config.snapshot().hooks.token === "one")).toBe(true);
    writeFileSync(token, "'two'");
    expect(await eventually(() => config.snapshot().hooks.token === "two")).toBe(true);
  });
});
