/** Thinking levels in requests of the APIs under `/v1`, for a model that can think, and for one that cannot. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { ChatRequest } from "../../src/runtime/requests/runtime.ts";
import { putModel } from "../library/fixture.ts";
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
  ["High", "high"],
  ["vast", undefined],
])("POST /v1/responses with an effort of %s: %p", async (given, think) => {
  const body = { input: "hi", reasoning: { effort: given, summary: "auto" } };
  expect(await thinkAskedBy("/v1/responses", body)).toBe(think as boolean);
});

const messages = [{ role: "user", content: "hi" }];
const requests: (readonly [path: string, (effort: unknown) => object])[] = [
  ["/v1/chat/completions", (effort) => ({ messages, reasoning_effort: effort })],
  ["/v1/chat/completions", (effort) => ({ messages, reasoning: { effort: effort } })],
  ["/v1/completions", (effort) => ({ prompt: "hi", reasoning_effort: effort })],
  ["/v1/responses", (effort) => ({ input: "hi", reasoning: { effort: effort } })],
  ["/v1/messages", (effort) => ({ max_tokens: 5, messages, output_config: { effort: effort } })],
  ["/v1/messages", (effort) => ({ max_tokens: 5, messages, thinking: { type: effort, budget_tokens: 1024 } })],
];
const EFFORTS = ["minimal", "low", "medium", "high", "xhigh", "max", "vast", "enabled", "adaptive", "", 3, true, null];

test.each(requests)(
  "%s takes any effort of thinking for any model, and logs an ignored level",
  async (path, bodyOf) => {
    for (const effort of EFFORTS) {
      await thinkAskedBy(path, bodyOf(effort));
      const logged = harness.logs.length;
      expect([effort, await thinkAskedBy(path, { ...bodyOf(effort), model: "m" })]).toEqual([effort, undefined]);
      const left = harness.logs.slice(logged).filter(({ msg }) => String(msg).includes("thinking level"));
      if (typeof effort === "string" && effort !== "") expect(left).toMatchObject([{ level: "debug", model: "m" }]);
    }
    for (const model of ["m", "thinker"]) {
      expect((await thinkAskedBy(path, { ...bodyOf("none"), model })) || false).toBe(false);
    }
  },
);

test("a native request with think is refused if the model cannot think", async () => {
  const response = await harness.post("/api/chat", { model: "m", messages, think: "high" });
  expect([response.status, await response.json()]).toEqual([400, { error: '"m" does not support thinking' }]);
});
