import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { channelsSchema } from "../../../src/gateway/channels/config.ts";
import { checkChannels } from "../../../src/gateway/channels/health.ts";
import { channelProblems, loadChannels } from "../../../src/gateway/channels/load.ts";
import { scripted } from "./fixtures.ts";
import { startPlatform, TOKEN } from "./platforms.ts";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "hearth-channels-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const load = (section: unknown) => loadChannels(channelsSchema.parse(section), { fetch, folder, now: Date.now });
const problems = async (section: unknown) =>
  (await load(section)).problems.map(({ path, message }) => `${path.join(".")}: ${message}`);

test("channels are the configured and enabled platforms", async () => {
  const { channels, problems } = await load({
    telegram: { botToken: "1:a" },
    slack: { botToken: "xoxb-1", enabled: false },
  });
  expect(problems).toEqual([]);
  expect([...channels.keys()]).toEqual(["telegram"]);
});

test.each([
  [{ telegram: { botToken: "1:a", tokne: 1 } }, "channels.telegram.tokne: unknown key"],
  [{ telegram: {} }, "channels.telegram: expected either botToken or tokenFile"],
  [{ telegram: { botToken: "a", tokenFile: "b" } }, "channels.telegram: expected either botToken or tokenFile"],
  [{ slack: { botToken: "with blank" } }, "channels.slack.botToken: expected visible ASCII characters without blanks"],
  [{ signal: { baseUrl: "file:///etc/passwd" } }, "channels.signal.baseUrl: Invalid URL"],
  [{ tg: { botToken: "a" } }, "channels.tg: unknown channel: expected 'telegram'"],
  [{ order: ["tg", "slak"] }, "channels.order.1: unknown channel; did you mean 'slack'?"],
  [{ mattermost: {} }, 'channels.mattermost: is a plugin: name it in channels.plugins, as "mattermost"'],
])("%j is reported with its place", async (section, expected) => {
  expect(await problems(section)).toEqual([expected]);
  expect(
    channelProblems(channelsSchema.parse(section)).map(({ path, message }) => `${path.join(".")}: ${message}`),
  ).toEqual([expected]);
});

test("an error in one platform disables no other platform", async () => {
  const { channels, problems } = await load({
    telegram: { botToken: "1:a" },
    discord: { token: "t", defaultTo: "general" },
    slack: { tokenFile: "missing" },
  });
  expect([...channels.keys()]).toEqual(["telegram"]);
  expect(problems.map(({ path }) => path)).toEqual([
    ["channels", "discord"],
    ["channels", "slack"],
  ]);
  expect(problems[1]?.message).toBe(`${join(folder, "missing")}: cannot be read: ENOENT`);
});

describe("a token file", () => {
  test("may have blanks around the token", async () => {
    const server = startPlatform("telegram");
    writeFileSync(join(folder, "token"), `  ${TOKEN}\n`);
    const { channels } = await load({ telegram: { tokenFile: "token", baseUrl: server.url } });
    const telegram = channels.get("telegram")!;
    const { signal } = new AbortController();
    expect(await telegram.send({ target: telegram.parseTarget("42"), text: "hi", key: "k", signal })).toMatchObject({
      kind: "sent",
    });
    expect(server.wrong).toEqual([]);
    server.stop();
  });

  test("without a valid token is reported without its content", async () => {
    writeFileSync(join(folder, "token"), "two words");
    writeFileSync(join(folder, "huge"), "x".repeat(20_000));
    expect(await problems({ telegram: { tokenFile: "token" }, slack: { tokenFile: "huge" } })).toEqual([
      `channels.telegram: ${join(folder, "token")}: expected one token of visible ASCII characters without blanks`,
      `channels.slack: ${join(folder, "huge")}: expected a token of at most 16384 bytes`,
    ]);
  });
});

describe("plugins", () => {
  const plugin = (id: string, aliases = "[]") => `
    export default ({ Type, channelSchema, makeApi }) => ({
      id: "${id}", aliases: ${aliases},
      schema: channelSchema({ room: Type.String() }),
      make: (settings, { fetch }) => ({
        id: "${id}", chunkLimit: 100, chunkUnit: "utf16", dedupeMs: 0, spacingMs: 0,
        parseTarget: (to) => ({ channel: "${id}", to }),
        send: async () => ({ kind: "sent", messageId: settings.room }),
        check: async () => ({ ok: true }),
      }),
    });`;

  test("a module beside the configuration adds a channel, with only the tools that it is passed", async () => {
    writeFileSync(join(folder, "pager.ts"), plugin("pager", '["beep"]'));
    const { channels, problems, kinds } = await load({ plugins: ["./pager.ts"], pager: { room: "7" } });
    expect(problems).toEqual([]);
    const { signal } = new AbortController();
    const request = { target: { channel: "pager", to: "x" }, text: "hi", key: "k", signal };
    expect(await channels.get("pager")!.send(request)).toEqual({ kind: "sent", messageId: "7" });
    expect(kinds.at(-1)?.aliases).toEqual(["beep"]);
  });

  test("a changed module is loaded again", async () => {
    const path = join(folder, "pager.ts");
    writeFileSync(path, plugin("pager"));
    await load({ plugins: [path] });
    writeFileSync(path, plugin("beeper"));
    utimesSync(path, new Date(), new Date(Date.now() + 5000));
    expect((await load({ plugins: [path] })).kinds.at(-1)?.id).toBe("beeper");
  });

  test.each([
    ["nowhere", "expected a path, or one of mattermost"],
    ["./missing.ts", "ENOENT"],
    ["__proto__", "expected a path, or one of mattermost"],
  ])("%s is refused with the reason", async (name, message) => {
    const [problem] = await problems({ plugins: [name] });
    expect(problem).toStartWith(`channels.plugins.0: the plugin '${name}' cannot be used: `);
    expect(problem).toContain(message);
  });

  test.each([
    ["no function as its export", "export default 5;", "expected a function as the default export"],
    [
      "an object that is not a channel",
      "export default () => ({ id: 'x' });",
      "expected it to make { id, aliases, schema, make }",
    ],
    ["an exception at import", "throw new Error('at import');", "at import"],
    ["a syntax error", "export default (", ""],
    ["a name that is taken", plugin("telegram"), "its name is taken by 'telegram'"],
    ["an alias that is taken", plugin("pigeon", '["tg"]'), "its name is taken by 'telegram'"],
    ["the name of a setting", plugin("plugins"), "expected it to make"],
    ["the name `last`", plugin("last"), "expected it to make"],
  ])("a module with %s is reported, and disables nothing else", async (_, source, message) => {
    writeFileSync(join(folder, "bad.ts"), source);
    const { channels, problems } = await load({ plugins: ["./bad.ts"], telegram: { botToken: "1:a" } });
    expect(problems.map((problem) => problem.path)).toEqual([["channels", "plugins", 0]]);
    expect(problems[0]?.message).toContain(message);
    expect([...channels.keys()]).toEqual(["telegram"]);
  });
});

test("the health of all channels is checked at once; one that throws or hangs is unhealthy", async () => {
  const channels = [
    scripted(() => ({ kind: "sent" }), { id: "fine" }),
    scripted(() => ({ kind: "sent" }), { id: "throws", check: () => Promise.reject(new Error("bug")) }),
    scripted(() => ({ kind: "sent" }), { id: "hangs", check: () => new Promise(() => {}) }),
  ];
  expect(await checkChannels(new Map(channels.map((each) => [each.id, each])), { timeoutMs: 100 })).toEqual([
    { id: "fine", health: { ok: true } },
    { id: "throws", health: { ok: false, reason: "throws: bug" } },
    { id: "hangs", health: { ok: false, reason: "hangs: no answer in time" } },
  ]);
});
