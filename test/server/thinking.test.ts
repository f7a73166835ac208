/** What requests of the Anthropic and Responses APIs ask of a model that can think. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { ChatRequest } from "../../src/runtime/runtime.ts";
import { putModel } from "../store/fixture.ts";
import { makeHarness, type Harness } from "./harness.ts";

const TEMPLATE =
  "{{ range .Messages }}{{ if .Thinking }}<think>{{ .Thinking }}</think>{{ end }}{{ .Content }}{{ end }}";

let harness: Harness;
beforeAll(async () => {
  harness = await makeHarness();
  await putModel(harness.root, "thinker", { texts: [["template", TEMPLATE]] });
});
afterAll(() => harness.close());

const thinkAskedBy = async (path: string, body: object) => {
  const response = await harness.post(path, { model: "thinker", ...body });
  expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
  return (harness.runtime.requests.at(-1) as ChatRequest).think;
};

const effort = (value: string) => ({ output_config: { effort: value } });
test.each([
  [{ thinking: { type: "enabled", budget_tokens: 1024 } }, true],
  [{ thinking: { type: "enabled" }, ...effort("low") }, true],
  [{ thinking: { type: "disabled" }, ...effort("low") }, false],
  [{ thinking: { type: "adaptive" } }, undefined],
  [{ thinking: { type: "adaptive" }, ...effort("xhigh") }, "high"],
  [effort("low"), "low"],
  [effort("max"), "max"],
  [{}, undefined],
])("POST /v1/messages with %j: %p", async (body, think) => {
  const messages = [{ role: "user", content: "hi" }];
  expect(await thinkAskedBy("/v1/messages", { max_tokens: 5, messages, ...body })).toBe(think as boolean);
});

test.each([
  ["none", false],
  ["minimal", "low"],
  ["high", "high"],
  ["xhigh", "max"],
])("POST /v1/responses with an effort of %s: %p", async (given, think) => {
  const body = { input: "hi", reasoning: { effort: given, summary: "auto" } };
  expect(await thinkAskedBy("/v1/responses", body)).toBe(think as boolean);
});
