/** Stock clients against the routes, over a script instead of a model. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import OpenAI from "openai";
import { threeValues } from "../server/fakes.ts";
import { makeHarness, type Harness } from "../server/harness.ts";
import { CHECKS as LANGCHAIN } from "./langchain-client.ts";
import { CHECKS as OLLAMA } from "./ollama-client.ts";
import { CHECKS as OPENAI } from "./openai-client.ts";
import { scripted } from "./scripted.ts";
import { CHECKS as VERCEL } from "./vercel-client.ts";

let harness: Harness;
let url: string;
beforeAll(async () => {
  harness = await makeHarness();
  ({ url } = harness.listen());
  harness.runtime.script = scripted;
  harness.runtime.embedding = async (request) => ({
    ...(await threeValues(request)),
    embeddings: request.inputs.map(({ length }) => unitVector(length, request.dimensions ?? 8)),
  });
});
afterAll(() => harness.close());

function unitVector(seed: number, dim: number): Float32Array {
  const values = Array.from({ length: dim }, (_, i) => Math.sin(seed + i));
  return Float32Array.from(values, (value) => value / Math.hypot(...values));
}

describe.each([
  ["ollama", OLLAMA],
  ["openai", OPENAI],
  ["@langchain/ollama", LANGCHAIN],
  ["ai with ollama-ai-provider-v2", VERCEL],
])("the npm client %s", (_client, checks) => {
  for (const [name, check] of Object.entries(checks)) test(name, () => check({ url, model: "m:latest" }));
});

test("the openai client gets 401 with a wrong key, and an answer with the right one", async () => {
  const guarded = await makeHarness({ apiKeys: ["alpha"] });
  const baseURL = `${guarded.listen().url}/v1`;
  const ask = async (apiKey: string) => new OpenAI({ baseURL, apiKey, maxRetries: 0 }).models.retrieve("m");
  await expect(ask("beta")).rejects.toMatchObject({ status: 401, code: "invalid_api_key" });
  await expect(ask("alpha")).resolves.toMatchObject({ id: "m" });
  await guarded.close();
});
