/** A sender's answer about a recipient before anything is sent: a real gateway with a configured channel. */
import { expect, test } from "bun:test";
import { json, startGateway } from "./world.ts";

const telegram = { botToken: "123:abc", baseUrl: "http://127.0.0.1:1", defaultTo: "42" };

test("an invalid recipient gets a warning in the answer that accepts the request", async () => {
  const { hook } = await startGateway({ settings: { channels: { telegram } } });
  const warnings = async (body: object): Promise<unknown> => {
    const response = await hook("agent", { message: "hi", ...body });
    expect(response.status).toBe(202);
    return (await json(response)).warnings;
  };
  const wrong = ["to: no recipient of this channel; the reply cannot be delivered there"];
  expect(await warnings({ channel: "telegram", to: "somebody else" })).toEqual(wrong);
  expect(await warnings({ channel: "TG", to: "user:U0123ABCD" })).toEqual(wrong);
  expect(await warnings({ channel: "telegram", to: "somebody else", deliver: false })).toBeUndefined();
  expect(await warnings({ channel: "telegram", to: "-100123:topic:5" })).toBeUndefined();
  expect(await warnings({ channel: "telegram" })).toBeUndefined();
  expect(await warnings({ channel: "slack", to: "C0123456" })).toEqual([
    "channel: this channel is not configured; the reply cannot be delivered",
  ]);
});
