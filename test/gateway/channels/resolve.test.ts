import { describe, expect, test } from "bun:test";
import type { Target } from "../../../src/gateway/channels/channel.ts";
import {
  channelStandings,
  findChannelId,
  resolveTarget,
  type TargetRequest,
  type Directory,
} from "../../../src/gateway/channels/resolve.ts";
import { sectionFor, type PlatformId } from "./platforms.ts";
import { channelsFrom, kindsOf } from "./fixtures.ts";

const kinds = await kindsOf(["mattermost"]);

async function directory(given: Partial<Record<PlatformId, string | undefined>>, order?: string[]): Promise<Directory> {
  const sections = Object.entries(given).map(([id, defaultTo]) => {
    const more = defaultTo === undefined ? {} : { defaultTo };
    return [id, sectionFor(id as PlatformId, "http://127.0.0.1:1", more)] as const;
  });
  return { channels: await channelsFrom(Object.fromEntries(sections)), kinds, order };
}

const ask = async (channels: Parameters<typeof directory>[0], asked: TargetRequest, order?: string[]) =>
  resolveTarget(await directory(channels, order), asked);
const lastTelegram: Target = { channel: "telegram", to: "-100123", thread: "7" };

describe("channel `last`", () => {
  test("is the main session's last channel, recipient and thread", async () => {
    const asked = { channel: "last", last: lastTelegram };
    expect(await ask({ whatsapp: "+15550100", telegram: undefined }, asked)).toEqual(lastTelegram);
  });

  test("with a recipient in the request keeps the last channel but not its thread", async () => {
    const asked = { channel: "last", to: "42", last: lastTelegram };
    expect(await ask({ telegram: undefined }, asked)).toEqual({ channel: "telegram", to: "42" });
  });

  test("without a last route is the first configured platform of the order, with its default recipient", async () => {
    const channels = { msteams: "a:1", discord: "channel:123456", telegram: "42", mattermost: "@ann" };
    expect(await ask(channels, { channel: "last" })).toEqual({ channel: "telegram", to: "42" });
    const { telegram: _, ...rest } = channels;
    expect(await ask(rest, { channel: "last" })).toEqual({ channel: "discord", to: "channel:123456" });
    expect(await ask({ mattermost: "@ann" }, { channel: "last" })).toEqual({ channel: "mattermost", to: "@ann" });
  });

  test("follows the order whatsapp, telegram, discord, slack, signal, imessage, msteams, mattermost", async () => {
    const list: [PlatformId, string][] = [
      ["whatsapp", "+15550100"],
      ["telegram", "42"],
      ["discord", "user:123456"],
      ["slack", "C0123"],
      ["signal", "+15550100"],
      ["imessage", "ann@example.com"],
      ["msteams", "a:123"],
      ["mattermost", "@ann"],
    ];
    for (let i = 0; i < list.length; i++) {
      const configured = Object.fromEntries(list.slice(i).toReversed());
      expect(await ask(configured, { channel: "last" })).toMatchObject({ channel: list[i]![0] });
    }
  });

  test("without a last route prefers a channel that has a recipient", async () => {
    const channels = { telegram: undefined, slack: "C0123", mattermost: "@ann" };
    expect(await ask(channels, { channel: "last" })).toEqual({ channel: "slack", to: "channel:C0123" });
    expect(await ask(channels, { channel: "last" }, ["telegram", "mattermost"])).toMatchObject({
      channel: "mattermost",
    });
    expect(await ask(channels, { channel: "last", to: "42" })).toEqual({ channel: "telegram", to: "42" });
    expect(await ask(channels, { channel: "last", to: "C0999" })).toEqual({ channel: "slack", to: "channel:C0999" });
    const standing = channelStandings(await directory(channels)).get("last");
    expect(standing).toMatchObject({ id: "slack", hasDefault: true });
  });

  test("follows the configured order", async () => {
    const channels = { telegram: "42", slack: "C0123" };
    expect(await ask(channels, { channel: "last" }, ["slack"])).toMatchObject({ channel: "slack" });
    expect(await ask(channels, { channel: "last" }, ["teams", "tg"])).toMatchObject({ channel: "telegram" });
  });

  test("ignores a last channel that is no longer configured, and its recipient", async () => {
    expect(await ask({ whatsapp: undefined }, { channel: "last", last: lastTelegram })).toEqual({
      reason: "channel 'whatsapp' needs a recipient: none was given, none is known, and it has no defaultTo",
    });
    const asked = { channel: "last", last: lastTelegram };
    expect(await ask({ whatsapp: "+15550100" }, asked)).toEqual({ channel: "whatsapp", to: "+15550100" });
  });

  test("without any configured channel returns the reason", async () => {
    expect(await ask({}, { channel: "last" })).toEqual({ reason: "no channel is configured" });
  });
});

describe("a channel by name", () => {
  test("uses the last recipient only on that recipient's platform", async () => {
    const channels = { telegram: undefined, discord: undefined, slack: "C0123" };
    expect(await ask(channels, { channel: "telegram", last: lastTelegram })).toEqual(lastTelegram);
    expect(await ask(channels, { channel: "discord", last: lastTelegram })).toMatchObject({
      reason: expect.stringContaining("channel 'discord' needs a recipient"),
    });
    expect(await ask(channels, { channel: "slack", last: lastTelegram })).toEqual({
      channel: "slack",
      to: "channel:C0123",
    });
  });

  test("refuses a recipient of another platform", async () => {
    expect(await ask({ discord: undefined }, { channel: "discord", to: "-100123" })).toMatchObject({
      reason: expect.stringContaining("channel 'discord': expected"),
    });
    // an unknown id is reported too
    expect(await ask({ discord: undefined }, { channel: "discord", to: "channel:1" })).toMatchObject({
      reason: expect.stringContaining("with an id of 5 to 21 digits, got"),
    });
  });

  test.each([
    ["tg", "telegram"],
    ["imsg", "imessage"],
    ["Teams", "msteams"],
    ["mm", "mattermost"],
    ["wa", "whatsapp"],
    ["slack", "slack"],
  ])("the name %s is channel %s", (name, id) => {
    expect(findChannelId(kinds, name)).toBe(id);
  });

  test("returns the reason if it is unknown, not configured or unusable", async () => {
    expect(await ask({}, { channel: "pigeon" })).toEqual({ reason: "unknown channel 'pigeon'" });
    expect(await ask({}, { channel: "slack", to: "C0123" })).toEqual({ reason: "channel 'slack' is not configured" });
    const unusable = { ...(await directory({})), unusable: new Set(["slack"]) };
    expect(resolveTarget(unusable, { channel: "slack" })).toEqual({
      reason: "channel 'slack' cannot be used as it is configured",
    });
  });
});

test.each([
  ["telegram", "telegram:-100123:topic:5", { to: "-100123", thread: "5" }],
  ["telegram", "123:9", { to: "123", thread: "9" }],
  ["telegram", "-100123:topic:1", { to: "-100123" }], // the API answers "message thread not found" for this id
  ["telegram", "https://t.me/ann_lee", { to: "@ann_lee" }],
  ["discord", "<@!123456>", { to: "user:123456" }],
  ["discord", "discord:123456", { to: "user:123456" }],
  ["slack", "#C0123", { to: "channel:C0123" }],
  ["slack", "<#C0123|general>", { to: "channel:C0123" }],
  ["slack", "<@u0123>", { to: "user:U0123" }],
  ["whatsapp", "15550100@s.whatsapp.net", { to: "+15550100" }],
  ["signal", "signal:group:abcdefgh12==", { to: "group:abcdefgh12==" }],
  ["signal", "u:ann.01", { to: "username:ann.01" }],
  ["imessage", "imessage:+1 555 0100", { to: "imessage:+15550100" }],
  ["imessage", "+44 7700 900123", { to: "+447700900123" }],
  ["imessage", "(415) 555-0123", { to: "4155550123" }], // in `region`: +41 is another country
  ["imessage", "sms:07700 900123", { to: "sms:07700900123" }],
  ["imessage", "chat_guid:iMessage;-;+15550100", { to: "chat_guid:iMessage;-;+15550100" }],
  ["msteams", "19:abc@thread.tacv2;messageid=17", { to: "conversation:19:abc@thread.tacv2;messageid=17" }],
  ["mattermost", `mattermost:${"u".repeat(26)}`, { to: `user:${"u".repeat(26)}` }],
] as const)("%s accepts the recipient %s", async (id, to, target) => {
  expect(await ask({ [id]: undefined }, { channel: id, to })).toEqual({ channel: id, ...target });
});

test.each([
  ["discord", "123456"], // a user's or a channel's?
  ["slack", "general"],
  ["slack", "channel:U0123"],
  ["whatsapp", "123-456@g.us"],
] as const)("%s refuses the ambiguous recipient %s", async (id, to) => {
  expect(await ask({ [id]: undefined }, { channel: id, to })).toHaveProperty("reason");
});

test("every alias has the state of its channel", async () => {
  const standings = channelStandings(await directory({ telegram: "42", slack: undefined }));
  expect(standings.get("tg")).toMatchObject({ isConfigured: true, hasDefault: true });
  expect(standings.get("slack")).toMatchObject({ isConfigured: true, hasDefault: false });
  expect(standings.get("teams")).toMatchObject({ isConfigured: false, hasDefault: false });
  expect(["tg", "slack", "teams"].map((name) => standings.get(name)?.takes("42"))).toEqual([true, false, false]);
  expect(standings.get("last")).toBe(standings.get("telegram")!);
  expect(channelStandings(await directory({})).has("last")).toBe(false);
});
