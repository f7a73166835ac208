/** Refused replies go to other channels, if the configuration says so. */
import { afterEach, expect, test } from "bun:test";
import { eventually } from "../../e2e/hearth.ts";
import { quiet, startChat, startGateway, TOKEN, type Chat, type GatewayBench } from "./fixtures.ts";

const WAIT_MS = 60_000;
/** The first one of a channel that refuses its token: src/gateway/channels/outbox/outages.ts. */
const PAUSE_MS = 15_000;

const servers: { stop(force: boolean): unknown }[] = [];
afterEach(() => servers.splice(0).map((server) => server.stop(true)));

/** The part of Discord that a bot's messages need; `sent` holds their texts. */
function startDiscord(answer = () => Response.json({ id: "1" })): { url: string; sent: string[] } {
  const sent: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      sent.push(((await request.json()) as { content: string }).content);
      return answer();
    },
  });
  servers.push(server);
  return { url: `http://127.0.0.1:${server.port}`, sent };
}

const refused = () => Response.json({ ok: false, description: "chat not found" }, { status: 400 });

function refusingChat(): Chat {
  const chat = startChat();
  chat.answer = refused;
  return chat;
}

const start = (hooks: object, { chat, discord }: { chat: Chat; discord: { url: string } }): Promise<GatewayBench> =>
  startGateway({
    hooks: { enabled: true, token: TOKEN, ...hooks },
    channels: {
      telegram: { botToken: "123:abc", baseUrl: chat.url, defaultTo: "42" },
      discord: { token: "t.o.k", baseUrl: discord.url, defaultTo: "channel:123456", spacingMs: 0 },
    },
    agents: quiet,
  });

const message = { message: "hi", channel: "telegram", wakeMode: "next-heartbeat" };

async function outcome(bench: GatewayBench, path: string): Promise<unknown> {
  const { runId } = (await (await bench.post(path, message)).json()) as { runId: string };
  const run = () => bench.gateway.deliveries.run(runId);
  const isOver = async (): Promise<boolean> => {
    const { finishedAt, reply } = (await run())!;
    return finishedAt !== null && reply !== "pending";
  };
  expect(await eventually(isOver, WAIT_MS)).toBe(true);
  return (await run())?.reply;
}

test("a refused reply is sent once to the next channel that accepts it, without an event", async () => {
  const [chat, discord] = [refusingChat(), startDiscord()];
  const bench = await start({ fallbackChannels: ["telegram", "nowhere", "discord"] }, { chat, discord });
  expect(await outcome(bench, "agent")).toBe("sent");
  expect([chat.sent, discord.sent]).toEqual([["42: done"], ["done"]]);
  expect(await bench.events()).toEqual(["Hook: done"]);
}, 120_000);

test("a reply that all channels refuse fails and is reported", async () => {
  const [chat, discord] = [refusingChat(), startDiscord(() => Response.json({ message: "no" }, { status: 403 }))];
  const bench = await start({ fallbackChannels: ["discord"] }, { chat, discord });
  expect(await outcome(bench, "agent")).toBe("failed");
  expect([chat.sent.length, discord.sent.length]).toEqual([1, 1]);
  expect(await bench.events()).toHaveLength(2);
}, 120_000);

test("a reply refused after a heartbeat saw it as under way is reported by another heartbeat", async () => {
  const [chat, discord] = [startChat(), startDiscord()];
  const gate = Promise.withResolvers<Response>();
  chat.answer = () => gate.promise;
  const isOnItsWay = (prompt: string): boolean => prompt.includes("a reply with this is on its way to people");
  const isRefused = (prompt: string): boolean => prompt.includes("the reply could not be delivered");
  const bench = await startGateway(
    {
      hooks: { enabled: true, token: TOKEN },
      channels: {
        telegram: { botToken: "123:abc", baseUrl: chat.url },
        discord: { token: "t.o.k", baseUrl: discord.url, spacingMs: 0 },
      },
      agents: { defaults: { heartbeat: { every: 0, target: "discord", to: "channel:123456" } } },
    },
    {
      script: ({ messages }) => {
        const prompt = messages.at(-1)!.content;
        if (isRefused(prompt)) return { text: "999 was not told: the database is down" };
        return { text: isOnItsWay(prompt) ? "they hear of it" : "the database is down" };
      },
    },
  );
  await bench.post("agent", { message: "hi", channel: "telegram", to: "999" });
  expect(await eventually(() => bench.prompts().some(isOnItsWay), WAIT_MS)).toBe(true);
  expect(await eventually(async () => (await bench.events()).length === 0, WAIT_MS)).toBe(true);
  gate.resolve(refused());
  expect(await eventually(() => discord.sent.length > 0, WAIT_MS)).toBe(true);
  expect([chat.sent, discord.sent]).toEqual([
    ["999: the database is down"],
    ["999 was not told: the database is down"],
  ]);
}, 120_000);

test("a mapping's own list overrides the common one, and a sent reply goes to no other channel", async () => {
  const [chat, discord] = [refusingChat(), startDiscord()];
  const mapping = (path: string, more: object) => ({
    match: { path },
    messageTemplate: "hi",
    channel: "telegram",
    wakeMode: "next-heartbeat",
    ...more,
  });
  const mappings = [mapping("none", { fallbackChannels: [] }), mapping("all", {})];
  const bench = await start({ fallbackChannels: ["discord"], mappings }, { chat, discord });
  expect([await outcome(bench, "none"), discord.sent]).toEqual(["failed", []]);
  chat.answer = () => Response.json({ ok: true, result: { message_id: 1 } });
  expect([await outcome(bench, "all"), discord.sent]).toEqual(["sent", []]);
  chat.answer = refused;
  expect([await outcome(bench, "all"), discord.sent]).toEqual(["sent", ["done"]]);
}, 120_000);

test("replies to a channel that refuses its token go to the next channel at once", async () => {
  const [chat, discord] = [startChat(), startDiscord()];
  const refusedAt: number[] = [];
  chat.answer = () => {
    refusedAt.push(performance.now());
    return Response.json({ ok: false, description: "Unauthorized" }, { status: 401 });
  };
  const bench = await start({ fallbackChannels: ["discord"] }, { chat, discord });
  expect([await outcome(bench, "agent"), await outcome(bench, "agent")]).toEqual(["sent", "sent"]);
  expect(discord.sent).toEqual(["done", "done"]);
  const isWithinPause = performance.now() - refusedAt[0]! < PAUSE_MS; // later it may be asked again
  expect(chat.sent.slice(0, isWithinPause ? 2 : 1)).toEqual(["42: done"]);
}, 120_000);
