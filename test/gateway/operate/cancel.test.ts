/** Recalled replies: whole gateways, real sockets. */
import { expect, test } from "bun:test";
import { queryAll } from "../../../src/gateway/database/store.ts";
import { eventually } from "../../e2e/hearth.ts";
import { quiet, startChat, startGateway, TOKEN, type Chat, type GatewayBench } from "./fixtures.ts";

const WAIT_MS = 60_000;

const away = () => new Response("away", { status: 503, headers: { "retry-after": "1" } });
const taken = () => Response.json({ ok: true, result: { message_id: 1 } });

const start = (chat: Chat): Promise<GatewayBench> =>
  startGateway({
    hooks: { enabled: true, token: TOKEN, fallbackChannels: ["signal"] },
    channels: {
      telegram: { botToken: "123:abc", baseUrl: chat.url, defaultTo: "42" },
      signal: { baseUrl: chat.url, defaultTo: "+15550100" },
    },
    agents: quiet,
  });

async function ask(bench: GatewayBench): Promise<string> {
  const body = { message: "hi", channel: "telegram", wakeMode: "next-heartbeat" };
  return ((await (await bench.post("agent", body)).json()) as { runId: string }).runId;
}

const messages = ({ gateway }: GatewayBench, condition: string): Promise<object[]> =>
  gateway.store.read(() => queryAll(`SELECT channel, state FROM outbox WHERE ${condition}`));

test("cancelling a run cancels its waiting reply, also on the fallback channels", async () => {
  const chat = startChat();
  chat.answer = () => new Response("away", { status: 503, headers: { "retry-after": "3600" } });
  const bench = await start(chat);
  const runId = await ask(bench);
  const waits = async () => (await messages(bench, "attempts = 1 AND state = 'queued'")).length === 1;
  expect(await eventually(waits, WAIT_MS)).toBe(true);
  expect(await bench.gateway.deliveries.run(runId)).toMatchObject({ state: "succeeded", reply: "pending" });
  expect(await bench.gateway.admin.cancel(runId)).toEqual([{ runId, result: "recalled" }]);
  expect(await eventually(async () => (await bench.events()).length === 2, WAIT_MS)).toBe(true);
  expect(await bench.gateway.deliveries.run(runId)).toMatchObject({ state: "succeeded", reply: "failed" });
  expect((await bench.events())[1]).toContain("the reply could not be delivered: cancelled");
  expect(await messages(bench, "TRUE")).toEqual([{ channel: "telegram", state: "cancelled" }]);
  expect(await bench.gateway.admin.cancel(runId)).toEqual([{ runId, result: "over" }]);
}, 120_000);

test("a reply cancelled while it is being sent is not tried again", async () => {
  const chat = startChat();
  const answer = Promise.withResolvers<Response>();
  chat.answer = () => answer.promise;
  const bench = await start(chat);
  const runId = await ask(bench);
  expect(await eventually(() => chat.sent.length === 1, WAIT_MS)).toBe(true);
  expect(await bench.gateway.admin.cancel(runId)).toEqual([{ runId, result: "stopping" }]);
  chat.answer = taken;
  answer.resolve(away());
  const reply = async () => (await bench.gateway.deliveries.run(runId))?.reply;
  expect(await eventually(async () => (await reply()) === "failed", WAIT_MS)).toBe(true);
  expect([chat.sent, await messages(bench, "TRUE")]).toEqual([
    ["42: done"],
    [{ channel: "telegram", state: "cancelled" }],
  ]);
}, 120_000);
