/** Stock clients against the real server and the embedded model. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import OpenAI from "openai";
import { CHECKS as LANGCHAIN } from "../clients/langchain-client.ts";
import { CHECKS as OLLAMA } from "../clients/ollama-client.ts";
import { CHECKS as OPENAI } from "../clients/openai-client.ts";
import { NEVER_ENDING } from "../clients/target.ts";
import { CHECKS as VERCEL } from "../clients/vercel-client.ts";
import { eventually, startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(60_000);

let hearth: Hearth;
beforeAll(async () => {
  hearth = await startHearth({ env: { HEARTH_NUM_PARALLEL: "1" } });
});
afterAll(() => hearth.stop());

describe.each([
  ["ollama", OLLAMA],
  ["openai", OPENAI],
  ["@langchain/ollama", LANGCHAIN],
  ["ai with ollama-ai-provider-v2", VERCEL],
])("the npm client %s", (_client, checks) => {
  for (const [name, check] of Object.entries(checks)) {
    test(name, () => check({ url: hearth.url, model: "hearth:latest" }));
  }
});

test("the server notices that an openai client aborted a stream, and frees its slot", async () => {
  const client = new OpenAI({ baseURL: `${hearth.url}/v1`, apiKey: "none", maxRetries: 0 });
  const messages = [{ role: "user" as const, content: "Count." }];
  const stream = await client.chat.completions.create({
    model: "hearth",
    messages,
    response_format: { type: "json_schema", json_schema: { name: "node", schema: NEVER_ENDING } },
    max_completion_tokens: 100_000, // without it, 512, which take 80 ms: the answer might end first
    stream: true,
  });
  for await (const _part of stream) stream.controller.abort();
  const isSeen = (): boolean =>
    hearth.log().some((line) => line.includes("/v1/chat/completions") && line.includes('"status":499'));
  expect(await eventually(isSeen, 30_000)).toBe(true);
  const next = await client.chat.completions.create({ model: "hearth", messages, max_tokens: 2 }); // on the only slot
  expect(next.choices).toHaveLength(1);
});

test("an openai stream whose runner dies ends with an error that says so", async () => {
  const client = new OpenAI({ baseURL: `${hearth.url}/v1`, apiKey: "none", maxRetries: 0 });
  const stream = await client.chat.completions.create({
    model: "hearth",
    messages: [{ role: "user", content: "Count." }],
    response_format: { type: "json_schema", json_schema: { name: "node", schema: NEVER_ENDING } },
    max_completion_tokens: 100_000, // without it, 512, which take 80 ms: the answer might end first
    stream: true,
  });
  const read = async (): Promise<void> => {
    let parts = 0;
    for await (const { choices } of stream) {
      parts += choices.length;
      if (parts === 1) for (const pid of await hearth.runnerPids()) process.kill(pid, "SIGKILL");
    }
  };
  await expect(read()).rejects.toThrow("model runner has unexpectedly stopped");
});
