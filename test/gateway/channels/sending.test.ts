import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Channel, SendOutcome } from "../../../src/gateway/channels/channel.ts";
import { channelsSchema } from "../../../src/gateway/channels/config.ts";
import { loadKinds, makeChannels } from "../../../src/gateway/channels/load.ts";
import { platforms, sectionFor, sections, startPlatform, startRude, TOKEN } from "./platforms.ts";
import type { PlatformId, StandIn } from "./platforms.ts";

const ids = Object.keys(platforms) as PlatformId[];
/** Platforms whose health check needs only a connection, or a token that they have already. */
const ASKS_NOTHING: readonly string[] = ["signal", "msteams"];
let server: StandIn;
afterEach(() => server?.stop());

async function channelAt(id: PlatformId, url: string, more: Record<string, unknown> = {}): Promise<Channel> {
  const config = channelsSchema.parse({ plugins: ["mattermost"], [id]: sectionFor(id, url, more) });
  const { kinds } = await loadKinds(config, { folder: "/" });
  const { channels, problems } = makeChannels(config, kinds, { fetch, folder: "/", now: Date.now });
  expect(problems).toEqual([]);
  return channels.get(id)!;
}

const send = (channel: Channel, to: string, text = "hello", signal = new AbortController().signal) =>
  channel.send({ target: channel.parseTarget(to), text, key: "0198-key", signal });

const messagesOf = (id: PlatformId) => server.seen.filter((entry) => platforms[id].message(entry as never));
const json = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  Response.json(body, { status, headers });

describe.each(ids)("%s", (id) => {
  let channel: Channel;
  beforeEach(async () => {
    server = startPlatform(id);
    channel = await channelAt(id, server.url);
  });
  const only = (reply: (entry: StandIn["seen"][number]) => Response) => {
    server.reply = (entry) => (platforms[id].message(entry as never) ? reply(entry) : undefined);
  };

  test("sends a message as one request of the documented form, and returns its id", async () => {
    const outcome = await send(channel, sections[id].to);
    expect(server.wrong).toEqual([]);
    expect(outcome).toEqual({ kind: "sent", messageId: expect.any(String) });
    expect(server.texts()).toEqual(["hello"]);
  });

  test("sends a text of exactly the limit unchanged", async () => {
    const text = "é".repeat(channel.chunkLimit);
    expect(await send(channel, sections[id].to, text)).toMatchObject({ kind: "sent" });
    expect(server.wrong).toEqual([]);
    expect(server.texts()).toEqual([text]);
  });

  test("tries again after the time of Retry-After on 429", async () => {
    only(() => json(429, { ok: false, error: "ratelimited" }, { "retry-after": "7" }));
    expect(await send(channel, sections[id].to)).toMatchObject({ kind: "retry", afterMs: 7000 });
  });

  test.each([500, 502, 503])("tries again on %d", async (status) => {
    only(() => json(status, { message: "oops" }));
    expect(await send(channel, sections[id].to)).toMatchObject({ kind: "retry" });
  });

  test("reports the message as unknown on 504", async () => {
    only(() => json(504, {}));
    expect(await send(channel, sections[id].to)).toMatchObject({ kind: "unknown" });
  });

  test("reports 400 as failed, with the token hidden from the reason", async () => {
    const words = `bad ${TOKEN} request`;
    const body = { ok: false, error: { message: words, code: 100 }, description: words, message: words };
    only(() => json(400, body));
    const outcome = await send(channel, sections[id].to);
    expect(outcome.kind).toBe("failed");
    if (id !== "slack") expect(JSON.stringify(outcome)).toContain("bad *** request".replace("***", secretOf(id)));
    if (secretOf(id) === "***") expect(JSON.stringify(outcome)).not.toContain(TOKEN);
  });

  test("reports credentials that the platform refuses as refused", async () => {
    server.reply = () => json(401, { ok: false, message: "Unauthorized" });
    const fresh = await channelAt(id, server.url);
    expect(await send(fresh, sections[id].to)).toEqual({ kind: "refused", reason: expect.stringContaining("401") });
  });

  test("follows no redirect", async () => {
    only(() => new Response(null, { status: 302, headers: { location: `${server.url}/elsewhere` } }));
    expect(await send(channel, sections[id].to)).toMatchObject({ kind: "failed" });
    expect(server.seen.some(({ path }) => path.includes("elsewhere"))).toBe(false);
  });

  test("reports a request aborted after it was sent as unknown", async () => {
    const stop = new AbortController();
    server.reply = (entry) => {
      if (!platforms[id].message(entry as never)) return undefined;
      stop.abort();
      return new Promise(() => {});
    };
    expect(await send(channel, sections[id].to, "hello", stop.signal)).toMatchObject({ kind: "unknown" });
  });

  test("reads only a bounded part of an endless answer", async () => {
    const endless = () =>
      new ReadableStream({ pull: (at) => at.enqueue(new TextEncoder().encode("x".repeat(65_536))) });
    only(() => new Response(endless()));
    expect((await send(channel, sections[id].to)).kind).toBe("unknown");
  });

  test("reports a 200 that is not the platform's as unknown, and as unhealthy", async () => {
    const page = () => new Response("<!doctype html><p>Welcome</p>", { headers: { "content-type": "text/html" } });
    only(page);
    expect(await send(channel, sections[id].to)).toMatchObject({
      kind: "unknown",
      reason: expect.stringContaining("a body that it never sends"),
    });
    server.reply = page;
    if (!ASKS_NOTHING.includes(id))
      expect(await channel.check(new AbortController().signal)).toMatchObject({ ok: false });
  });

  test("parses its own written form of a recipient to the same recipient", () => {
    const target = channel.parseTarget(sections[id].to);
    expect(target.channel).toBe(id);
    const again = channel.parseTarget(target.to);
    expect(again.to).toBe(target.to);
  });

  test("refuses an invalid recipient with an error that names the channel", () => {
    for (const to of [
      "",
      "  ",
      "no such\nthing",
      "\u0000",
      "'; DROP TABLE",
      "../../etc",
      "x".repeat(5000),
      "__proto__",
    ]) {
      expect(() => channel.parseTarget(to)).toThrow(`channel '${id}'`);
    }
  });

  test("is healthy only while the platform answers and accepts the credentials", async () => {
    const { signal } = new AbortController();
    expect(await channel.check(signal)).toEqual({ ok: true });
    expect(server.wrong).toEqual([]);
    server.reply = () => json(401, { message: "Unauthorized" });
    const fresh = await channelAt(id, server.url);
    expect(await fresh.check(signal)).toMatchObject({ ok: false, reason: expect.stringContaining("401") });
    server.stop();
    const alone = await channelAt(id, server.url);
    expect(await alone.check(signal)).toMatchObject({ ok: false });
  });
});

const secretOf = (id: PlatformId): string => (id === "signal" ? TOKEN : "***");

describe("a connection that breaks", () => {
  const direct = ids.filter((id) => id !== "msteams"); // needs its token first

  test.each(direct)("%s: tries again if nothing listens at the address", async (id) => {
    const channel = await channelAt(id, "http://127.0.0.1:1");
    expect(await send(channel, sections[id].to)).toMatchObject({ kind: "retry" });
  });

  test.each(direct)("%s: tries again after a TLS handshake that never ends, because nothing was sent", async (id) => {
    const rude = await startRude(() => {});
    const channel = await channelAt(id, rude.url.replace("http:", "https:"));
    expect(await send(channel, sections[id].to, "hello", AbortSignal.timeout(300))).toMatchObject({ kind: "retry" });
    rude.stop();
  });

  test.each(direct)(
    "%s: reports a connection cut before the answer as unknown, and sends the request once",
    async (id) => {
      const rude = await startRude((socket) => socket.destroy());
      const channel = await channelAt(id, rude.url);
      for (let i = 1; i <= 3; i++) {
        expect(await send(channel, sections[id].to)).toMatchObject({ kind: "unknown" });
        expect(rude.taken()).toBe(i);
      }
      rude.stop();
    },
  );

  test.each(direct)("%s: reports an answer that is not HTTP as unknown", async (id) => {
    const rude = await startRude((socket) => socket.end("HTTP/1.1 999999 what\r\n\r\n"));
    const channel = await channelAt(id, rude.url);
    expect((await send(channel, sections[id].to)).kind).toBe("unknown");
    rude.stop();
  });
});

const MARKDOWN = "**Build `7`** of [a](https://a.example/?b&c) *failed*:\n\n```sh\nmake <all>\n```";
const FORMATTED: Partial<Record<PlatformId, unknown>> = {
  slack: { text: "*Build `7`* of <https://a.example/?b&amp;c|a> _failed_:\n\n```\nmake &lt;all&gt;\n```" },
  telegram: {
    text: "Build 7 of a failed:\n\nmake <all>",
    entities: [
      { type: "bold", offset: 0, length: 6 },
      { type: "code", offset: 6, length: 1 },
      { type: "text_link", offset: 11, length: 1, url: "https://a.example/?b&c" },
      { type: "italic", offset: 13, length: 6 },
      { type: "pre", offset: 22, length: 10, language: "sh" },
    ],
  },
  whatsapp: { text: { body: "*Build `7`* of a (https://a.example/?b&c) _failed_:\n\n```\nmake <all>\n```" } },
  signal: {
    params: {
      message: "Build 7 of a (https://a.example/?b&c) failed:\n\nmake <all>",
      textStyle: ["0:7:BOLD", "6:1:MONOSPACE", "38:6:ITALIC", "47:10:MONOSPACE"],
    },
  },
  imessage: { params: { text: "Build 7 of a (https://a.example/?b&c) failed:\n\nmake <all>" } },
  discord: { content: MARKDOWN },
  msteams: { text: MARKDOWN },
  mattermost: { message: MARKDOWN },
};

describe("an answer in Markdown", () => {
  test.each(ids)("has the format of %s", async (id) => {
    server = startPlatform(id);
    expect(await send(await channelAt(id, server.url), sections[id].to, MARKDOWN)).toMatchObject({ kind: "sent" });
    expect(server.wrong).toEqual([]);
    expect(messagesOf(id)[0]!.body).toMatchObject(FORMATTED[id] as object);
  });

  test.each(["telegram", "whatsapp"] as const)("that its format makes too long for %s stays as it is", async (id) => {
    server = startPlatform(id);
    const text = `|${"a".repeat(200)}|b|\n|-|-|\n${"|x|y|\n".repeat(60)}`.trimEnd();
    expect(await send(await channelAt(id, server.url), sections[id].to, text)).toMatchObject({ kind: "sent" });
    expect([server.wrong, server.texts()]).toEqual([[], [text]]);
  });

  test("has at most a hundred entities on Telegram", async () => {
    server = startPlatform("telegram");
    await send(await channelAt("telegram", server.url), sections.telegram.to, "**a** b ".repeat(150));
    expect(server.wrong).toEqual([]);
    expect(messagesOf("telegram")[0]!.body["entities"]).toHaveLength(100);
  });
});

test("every message uses a new connection, because a kept one may be dead", async () => {
  const rude = await startRude((socket) => {
    const body = '{"ok":true,"result":{"message_id":1}}';
    socket.write(`HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
  });
  const channel = await channelAt("telegram", rude.url);
  for (let i = 1; i <= 3; i++) {
    expect(await send(channel, "42")).toMatchObject({ kind: "sent" });
    expect(rude.connections()).toBe(i);
  }
  rude.stop();
});

describe("a platform's own errors", () => {
  const cases: [PlatformId, Response | (() => Response), Partial<SendOutcome>][] = [
    [
      "telegram",
      json(429, { ok: false, description: "Too Many Requests", parameters: { retry_after: 3 } }),
      { kind: "retry", afterMs: 3000 },
    ],
    [
      "telegram",
      json(400, { ok: false, description: "Bad Request: chat not found" }),
      { kind: "failed", reason: "telegram: answered 400: Bad Request: chat not found" },
    ],
    [
      "telegram",
      json(400, { ok: false, description: "upgraded", parameters: { migrate_to_chat_id: -100777 } }),
      { kind: "failed", reason: "telegram: answered 400: upgraded; the chat's id is now -100777" },
    ],
    ["discord", json(429, { message: "limited", retry_after: 0.25, global: false }), { kind: "retry", afterMs: 250 }],
    ["discord", json(429, { message: "limited", retry_after: 1.2339999675750732 }), { kind: "retry", afterMs: 1234 }],
    [
      "discord",
      json(403, { message: "Missing Access", code: 50001 }),
      { kind: "failed", reason: "discord: answered 403: Missing Access (50001)" },
    ],
    [
      "slack",
      json(200, { ok: false, error: "channel_not_found" }),
      { kind: "failed", reason: "slack: channel_not_found" },
    ],
    [
      "telegram",
      json(403, { ok: false, description: "Forbidden: bot was blocked by the user" }),
      { kind: "failed", reason: "telegram: answered 403: Forbidden: bot was blocked by the user" },
    ],
    ["telegram", json(404, { ok: false, description: "Not Found" }), { kind: "refused" }],
    ["slack", json(200, { ok: false, error: "token_expired" }), { kind: "refused", reason: "slack: token_expired" }],
    ["slack", json(200, { ok: false, error: "missing_scope" }), { kind: "failed" }],
    ["slack", json(200, { ok: false, error: "service_unavailable" }), { kind: "retry" }],
    ["whatsapp", json(400, { error: { message: "Session has expired", code: 190 } }), { kind: "refused" }],
    ["whatsapp", json(403, { error: { message: "Access denied", code: 131005 } }), { kind: "refused" }],
    ["whatsapp", json(403, { error: { message: "Not in this country", code: 130497 } }), { kind: "failed" }],
    ["imessage", json(403, {}), { kind: "refused" }],
    ["slack", json(200, { ok: false, error: "fatal_error" }), { kind: "unknown" }],
    ["slack", new Response("<html>"), { kind: "unknown" }],
    ["whatsapp", json(400, { error: { message: "Pair rate limit", code: 131056 } }), { kind: "retry" }],
    ["whatsapp", json(400, { error: { message: "Later", code: 2, is_transient: true } }), { kind: "retry" }],
    [
      "whatsapp",
      json(400, { error: { message: "No", code: 131047, error_data: { details: "24 hours have passed" } } }),
      { kind: "failed", reason: "whatsapp: answered 400: No: 24 hours have passed" },
    ],
    [
      "signal",
      json(200, { jsonrpc: "2.0", error: { code: -1, message: "Unregistered" } }),
      { kind: "failed", reason: "signal: Unregistered" },
    ],
    ["signal", json(200, { jsonrpc: "2.0", error: { code: -5, message: "slow down" } }), { kind: "retry" }],
    ["signal", json(200, { jsonrpc: "2.0", error: { code: -3, message: "io" } }), { kind: "unknown" }],
    [
      "signal",
      json(200, { result: { timestamp: 1, results: [{ type: "UNREGISTERED_FAILURE" }] } }),
      { kind: "failed", reason: "signal: UNREGISTERED_FAILURE" },
    ],
    ["signal", new Response(null, { status: 201 }), { kind: "sent" }],
    [
      "imessage",
      json(200, { jsonrpc: "2.0", error: { code: -32602, message: "no such chat" } }),
      { kind: "failed", reason: "imessage: no such chat" },
    ],
    ["imessage", json(200, { jsonrpc: "2.0", error: { code: -32603, message: "script failed" } }), { kind: "unknown" }],
    ["msteams", json(412, { error: { message: "precondition" } }), { kind: "retry" }],
    [
      "mattermost",
      json(403, { message: "no permission" }),
      { kind: "failed", reason: "mattermost: answered 403: no permission" },
    ],
  ];
  test.each(cases)("%s %#", async (id, reply, outcome) => {
    server = startPlatform(id);
    server.reply = (entry) => (platforms[id].message(entry as never) ? (reply as Response) : undefined);
    expect(await send(await channelAt(id, server.url), sections[id].to)).toMatchObject(outcome);
  });
});

describe("mentions in a model's text are disarmed", () => {
  const cases: [PlatformId, string, string][] = [
    ["slack", "<!channel> <@U123> a & b", "&lt;!channel&gt; &lt;@U123&gt; a &amp; b"],
    ["mattermost", "@all, (@Channel): x-@here. _@all_", "＠all, (＠Channel): x-＠here. _＠all_"],
    ["mattermost", "&#64;all &#x40;here &commat;channel @ch&#97;nnel", "＠all ＠here ＠channel ＠ch&#97;nnel"],
    ["mattermost", "info@all.example @alliance @ann", "info@all.example @alliance @ann"],
    ["mattermost", "@all\n```rb\n@channel = 1\n```\n@here", "＠all\n```rb\n@channel = 1\n```\n＠here"],
    ["mattermost", "- a\n  ```\n\n@all", "- a\n  ```\n\n＠all"], // the fence ended with the list
  ];
  test.each(cases)("%s: %j", async (id, text, sent) => {
    server = startPlatform(id);
    await send(await channelAt(id, server.url), sections[id].to, text);
    expect(server.texts()).toEqual([sent]);
  });
});

describe("direct messages", () => {
  test.each([
    ["discord", "user:987654321", "424242424242"],
    ["slack", "<@U123>", "D77"],
    ["msteams", "user:29:1abc", "a:direct"],
    ["mattermost", "@ann", "d".repeat(26)],
    ["mattermost", `user:${"b".repeat(26)}`, "d".repeat(26)],
  ] as const)("%s: to %s use one conversation, which is opened once", async (id, to, conversation) => {
    server = startPlatform(id);
    const channel = await channelAt(id, server.url);
    await send(channel, to, "one");
    const opening = server.seen.length;
    expect(await send(channel, to, "two")).toMatchObject({ kind: "sent" });
    expect(server.wrong).toEqual([]);
    expect(server.seen.length).toBe(opening + 1);
    expect(messagesOf(id).map((entry) => platforms[id].message(entry as never)?.to)).toEqual([
      conversation,
      conversation,
    ]);
  });

  test("are tried again if their conversation cannot be opened", async () => {
    server = startPlatform("discord");
    server.reply = ({ path }) => (path.endsWith("/channels") ? json(504, {}) : undefined);
    expect(await send(await channelAt("discord", server.url), "user:987654321")).toMatchObject({ kind: "retry" });
    expect(messagesOf("discord")).toEqual([]);
  });
});

describe("msteams tokens", () => {
  const tokenCalls = () => server.seen.filter(({ path }) => path.endsWith("/token")).length;

  test("are requested once for concurrent messages", async () => {
    server = startPlatform("msteams");
    const channel = await channelAt("msteams", server.url);
    await Promise.all([1, 2, 3].map(() => send(channel, "19:abc@thread.tacv2")));
    expect(tokenCalls()).toBe(1);
  });

  test("are replaced once if the platform refuses them", async () => {
    server = startPlatform("msteams");
    let refusals = 1;
    server.reply = ({ path }) => (path.endsWith("activities") && refusals-- > 0 ? json(401, {}) : undefined);
    const channel = await channelAt("msteams", server.url);
    expect(await send(channel, "19:abc@thread.tacv2")).toMatchObject({ kind: "sent" });
    expect(tokenCalls()).toBe(2);
    refusals = 5;
    expect(await send(channel, "19:abc@thread.tacv2")).toMatchObject({ kind: "refused" });
  });

  test("report the password as refused if it is wrong, and be tried again if the login answers nonsense", async () => {
    server = startPlatform("msteams");
    server.reply = () => json(401, { error: "invalid_client", error_description: `bad ${TOKEN}` });
    const outcome = await send(await channelAt("msteams", server.url), "19:abc@thread.tacv2");
    expect(outcome).toEqual({ kind: "refused", reason: "msteams: answered 401: bad ***" });
    server.reply = () => new Response("<html>", { status: 200 });
    expect(await send(await channelAt("msteams", server.url), "19:abc@thread.tacv2")).toMatchObject({ kind: "retry" });
  });
});
