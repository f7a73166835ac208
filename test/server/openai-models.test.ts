/** `GET /v1/models` and `GET /v1/models/:model`. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { putModel } from "../library/fixture.ts";
import { makeHarness, type Harness } from "./harness.ts";

let harness: Harness;
beforeAll(async () => {
  harness = await makeHarness();
  await putModel(harness.root, "hf.example/owner/name:Q4_K_M");
});
afterAll(() => harness.close());

const get = (path: string): Promise<Response> => harness.call("GET", path);
type Listed = { object: string; data: { id: string; status: object }[] };
const modelOf = (id: string, owned_by: string) => ({ id, object: "model", created: expect.any(Number), owned_by });

test("list: every model with its tag and owner", async () => {
  const { object, data } = (await (await get("/v1/models")).json()) as Listed;
  expect(object).toBe("list");
  const status = { value: "unloaded" };
  expect(data.toSorted((a, b) => (a.id < b.id ? -1 : 1))).toEqual([
    { ...modelOf("hf.example/owner/name:Q4_K_M", "owner"), status },
    { ...modelOf("m:latest", "library"), status },
  ]);
});

test("list: a model that a request waits for is loading", async () => {
  const waiting = { running: 0, waiting: 1, hasAdapters: false, kv: { used: 0, room: 0 } };
  harness.runtime.activities = [{ ...waiting, name: "m:latest", isLoaded: false }];
  const { data } = (await (await get("/models")).json()) as Listed;
  harness.runtime.activities = [];
  expect(data.find(({ id }) => id === "m:latest")?.status).toEqual({ value: "loading" });
});

test("list: an empty store gives an empty array", async () => {
  const empty = await makeHarness();
  await empty.call("DELETE", "/api/delete", { model: "m" });
  expect(await (await empty.call("GET", "/v1/models")).json()).toEqual({ object: "list", data: [] });
  await empty.close();
});

test.each([
  ["m", "m", "library"],
  ["m:latest", "m:latest", "library"],
  ["m%3Alatest", "m:latest", "library"],
  ["hf.example/owner/name:Q4_K_M", "hf.example/owner/name:Q4_K_M", "owner"],
  ["hf.example%2Fowner%2Fname%3AQ4_K_M", "hf.example/owner/name:Q4_K_M", "owner"],
])("retrieve: %s is found, under the requested name", async (path, id, owner) => {
  const response = await get(`/v1/models/${path}`);
  expect([response.status, await response.json()]).toEqual([200, modelOf(id, owner)]);
});

test.each([
  ["nope", 404, "model 'nope' not found"],
  ["a%20b", 400, "invalid model name"],
  ["%ff", 400, "model: expected a name in URL encoding"],
  ["..%2Fm", 400, "invalid model name"],
])("retrieve: %p is an error in OpenAI's shape: %d %s", async (path, status, message) => {
  const response = await get(`/v1/models/${path}`);
  expect([response.status, await response.json()]).toEqual([
    status,
    { error: expect.objectContaining({ message, param: null }) },
  ]);
});

test("other methods get 405 and the list of allowed methods", async () => {
  const response = await harness.post("/v1/models/a/b", {});
  expect([response.status, response.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
});
