/** A server's description of itself, and its recent requests. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { makeHarness, NOW, type Harness } from "./harness.ts";

let harness: Harness;
beforeAll(async () => void (harness = await makeHarness({ apiKeys: ["ann:secret-of-ann"] })));
afterAll(() => harness.close());

const KEY = { authorization: "Bearer secret-of-ann" };
const get = async (path: string, headers = KEY): Promise<any> =>
  (await harness.call("GET", path, undefined, headers)).json();

test.each(["/api/system", "/api/requests", "/api/parts"])("%s requires a key", async (path) => {
  const method = path === "/api/parts" ? "POST" : "GET";
  expect((await harness.call(method, path)).status).toBe(401);
});

test("GET /api/system returns the version and the activity of models", async () => {
  expect(await get("/api/system")).toMatchObject({ version: "1.2.3", activity: { running: 0, waiting: 0 } });
});

test("GET /api/requests returns the latest requests first, with counts, without texts and frequent polls", async () => {
  const chat = { model: "m", stream: false, messages: [{ role: "user", content: "a secret question" }] };
  await harness.call("POST", "/api/chat", chat, KEY);
  await get("/api/tags");
  await harness.call("POST", `/api/${"x".repeat(3000)}`, {}, KEY);
  const { requests } = await get("/api/requests");
  expect(requests[0]).toMatchObject({ method: "POST", status: 404 });
  expect(requests[0].path).toHaveLength(200);
  expect(requests[1]).toEqual({
    at: NOW.getTime(),
    method: "POST",
    path: "/api/chat",
    status: 200,
    ms: expect.any(Number),
    key: "ann",
    model: "m",
    requestId: expect.any(String),
    promptTokens: expect.any(Number),
    tokens: expect.any(Number),
  });
  expect(JSON.stringify(requests)).not.toContain("secret question");
  expect(requests.some(({ path }: { path: string }) => path === "/api/tags")).toBe(false);
  for (let i = 0; i < 250; i++) await harness.call("POST", "/api/none", {}, KEY);
  expect((await get("/api/requests")).requests).toHaveLength(200);
});

test("POST /api/parts returns digests and settings without paths", async () => {
  const response = await harness.call("POST", "/api/parts", { model: "m" }, KEY);
  const text = await response.text();
  expect(text).not.toContain(harness.root);
  expect(JSON.parse(text)).toMatchObject({
    displayName: "m:latest",
    weights: { digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/), size: expect.any(Number) },
    adapters: [],
    parameters: { stop: ["<|end|>"], temperature: 0.7 },
    name: { model: "m", tag: "latest" },
  });
});
