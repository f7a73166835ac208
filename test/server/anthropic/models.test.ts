/** `GET /v1/models` for clients of the Anthropic API. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { makeHarness, type Harness } from "../harness.ts";

let harness: Harness;
beforeAll(async () => void (harness = await makeHarness()));
afterAll(() => harness.close());

const get = (path: string) => harness.call("GET", path, undefined, { "anthropic-version": "2023-06-01" });
const MODEL = {
  type: "model",
  id: "m:latest",
  display_name: "m:latest",
  created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
  max_input_tokens: null,
  max_tokens: null,
  capabilities: null,
  lifecycle: "active",
  deprecated_at: null,
  line: null,
};

test("the list of models is a single page", async () => {
  const response = await get("/v1/models?limit=20");
  expect(response.headers.get("request-id")).toMatch(/^req_/);
  expect(await response.json()).toEqual({ data: [MODEL], has_more: false, first_id: "m:latest", last_id: "m:latest" });
});

test("a model is returned under the requested id, and an unknown one is a not_found_error", async () => {
  expect(await (await get("/v1/models/m")).json()).toEqual({ ...MODEL, id: "m" });
  expect([
    (await get("/v1/models/nope")).status,
    (await (await get("/v1/models/nope")).json()) as object,
  ]).toMatchObject([404, { type: "error", error: { type: "not_found_error", message: "model 'nope' not found" } }]);
});
