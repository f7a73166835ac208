/** The meaning of `last`, and events about the main session's own messages: whole gateways, real sockets. */
import { describe, expect, test } from "bun:test";
import { eventually } from "../../e2e/hearth.ts";
import { quiet, startChat, startGateway, TOKEN, type Chat, type GatewayBench } from "./fixtures.ts";
import { execute } from "../../../src/gateway/database/store.ts";

const WAIT_MS = 60_000;

const hooks = { enabled: true, token: TOKEN };
const telegram = (chat: Chat, more = {}) => ({ telegram: { botToken: "123:abc", baseUrl: chat.url, ...more } });
const heartbeat = (settings: object) => ({ defaults: { heartbeat: { every: 0, ...settings } } });

const runAgent = async (bench: GatewayBench, body: object): Promise<void> => {
  const response = await bench.post("agent", { message: "hi", wakeMode: "next-heartbeat", ...body });
  expect(response.status).toBe(202);
};

describe("`last`", () => {
  test("is the configured recipient of a heartbeat once that heartbeat was sent, also after a restart", async () => {
    const chat = startChat();
    const config = (to: object) => ({ hooks, channels: telegram(chat, { defaultTo: "42" }), agents: heartbeat(to) });
    const first = await startGateway(config({ target: "telegram", to: "99" }));
    await first.post("wake", { text: "look" });
    expect(await eventually(async () => (await first.route()) !== undefined, WAIT_MS)).toBe(true);
    expect(await first.route()).toEqual({ channel: "telegram", to: "99" });
    await first.stop();
    const second = await startGateway(config({}), { folder: first.folder });
    await runAgent(second, {});
    expect(await eventually(() => chat.sent.length === 2, WAIT_MS)).toBe(true);
    expect(chat.sent).toEqual(["99: done", "99: done"]);
  }, 120_000);

  test("is the channel's current defaultTo until another recipient was sent to", async () => {
    const chat = startChat();
    const config = (defaultTo: string) => ({
      hooks,
      channels: telegram(chat, { defaultTo }),
      agents: heartbeat({}),
    });
    const bench = await startGateway(config("42"));
    await bench.post("wake", { text: "look" });
    expect(await eventually(() => chat.sent.length === 1, WAIT_MS)).toBe(true);
    bench.configure(config("43"));
    expect(await eventually(() => bench.gateway.channels.channels.get("telegram")?.defaultTo === "43", WAIT_MS)).toBe(
      true,
    );
    await runAgent(bench, {});
    expect(await eventually(() => chat.sent.length === 2, WAIT_MS)).toBe(true);
    expect(chat.sent).toEqual(["42: done", "43: done"]);
  }, 120_000);

  test("is the heartbeat's named channel with its current defaultTo", async () => {
    const chat = startChat();
    const whatsapp = { phoneNumberId: "15550100", accessToken: "x", baseUrl: "http://127.0.0.1:1" }; // the list's first
    const config = (defaultTo: string) => ({
      hooks,
      channels: { whatsapp, ...telegram(chat, { defaultTo }) },
      agents: heartbeat({ target: "telegram" }),
    });
    const bench = await startGateway(config("42"), { script: (_, i) => ({ text: `answer ${i}` }) });
    const arrive = async (path: string, body: object, to: string): Promise<void> => {
      const before = chat.sent.length;
      await bench.post(path, body);
      expect(await eventually(() => chat.sent.length > before, WAIT_MS)).toBe(true);
      expect(chat.sent.at(-1)).toStartWith(`${to}: `);
    };
    await arrive("wake", { text: "look" }, "42");
    expect(await eventually(async () => (await bench.route()) !== undefined, WAIT_MS)).toBe(true);
    await arrive("agent", { message: "hi", wakeMode: "next-heartbeat" }, "42");
    bench.configure(config("43"));
    expect(await eventually(() => bench.gateway.channels.channels.get("telegram")?.defaultTo === "43", WAIT_MS)).toBe(
      true,
    );
    await arrive("wake", { text: "look again" }, "43");
    const isThere = async (): Promise<boolean> =>
      Bun.deepEquals(await bench.route(), { channel: "telegram", to: "43" });
    expect(await eventually(isThere, WAIT_MS)).toBe(true);
  }, 120_000);

  test("is not changed by a webhook that names a recipient", async () => {
    const chat = startChat();
    const bench = await startGateway({ hooks, channels: telegram(chat, { defaultTo: "42" }), agents: quiet });
    await runAgent(bench, { channel: "telegram", to: "666" });
    expect(await eventually(() => chat.sent.length === 1, WAIT_MS)).toBe(true);
    await runAgent(bench, {});
    expect(await eventually(() => chat.sent.length === 2, WAIT_MS)).toBe(true);
    expect([chat.sent, await bench.route()]).toEqual([["666: done", "42: done"], undefined]);
  }, 120_000);
});

describe("a message of the main session", () => {
  test("is reported there if it is refused, and its recipient does not become `last`", async () => {
    const chat = startChat();
    chat.answer = () => Response.json({ ok: false, description: "chat not found" }, { status: 400 });
    const bench = await startGateway({
      hooks,
      channels: telegram(chat),
      agents: heartbeat({ target: "telegram", to: "5" }),
    });
    await bench.post("wake", { text: "look" });
    const isReported = async (): Promise<boolean> =>
      (await bench.events()).some((text) => /could not be delivered\. Reason: .*chat not/.test(text));
    expect(await eventually(isReported, WAIT_MS)).toBe(true);
    expect(await bench.route()).toBeUndefined();
  }, 120_000);

  test("is reported there once if its outcome is unknown", async () => {
    const chat = startChat();
    const bench = await startGateway({ hooks, channels: telegram(chat, { defaultTo: "42" }), agents: heartbeat({}) });
    await bench.gateway.store.write(function* () {
      const target = { channel: "telegram", to: "42" };
      yield* bench.gateway.outbox.add({ groupId: "beat", target, text: "hello", now: Date.now() });
      // not due: the channel's node treats a marked message that is not being sent as never sent
      const later = Date.now() + 3_600_000;
      yield* execute("UPDATE outbox SET state = 'sending', sending_at = 1, attempts = 1, next_at = $1", later);
    });
    await bench.stop();
    const again = await startGateway(
      { hooks, channels: telegram(chat, { defaultTo: "42" }), agents: heartbeat({}) },
      { folder: bench.folder },
    );
    expect(await eventually(async () => (await again.events()).length === 1, WAIT_MS)).toBe(true);
    expect((await again.events())[0]).toContain("may not have been delivered, and is not sent again");
    expect(chat.sent).toEqual([]);
  }, 120_000);

  test("is reported once, by the run, if a webhook's run sent it", async () => {
    const chat = startChat();
    chat.answer = () => Response.json({ ok: false, description: "chat not found" }, { status: 400 });
    const bench = await startGateway({ hooks, channels: telegram(chat, { defaultTo: "42" }), agents: quiet });
    await runAgent(bench, { name: "CI" });
    expect(await eventually(async () => (await bench.events()).length === 2, WAIT_MS)).toBe(true);
    expect(await bench.events()).toEqual([
      "Hook CI: done",
      expect.stringContaining("Hook CI: the reply could not be delivered"),
    ]);
  }, 120_000);
});
