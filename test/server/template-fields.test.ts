/** `chat_template_kwargs` of chats. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import type { ChatRequest } from "../../src/runtime/requests/runtime.ts";
import { hello } from "./fakes.ts";
import { makeHarness, type Harness } from "./harness.ts";

let harness: Harness;
let url: string;
beforeAll(async () => {
  harness = await makeHarness();
  ({ url } = harness.listen());
});
afterAll(() => harness.close());
beforeEach(() => void (harness.runtime.script = hello));

const asking = (path: string): object =>
  path === "/v1/responses" ? { input: "hi" } : { messages: [{ role: "user", content: "hi" }], max_tokens: 9 };

const post = (path: string, fields: object): Promise<Response> =>
  fetch(url + path, {
    method: "POST",
    body: JSON.stringify({ model: "m", ...asking(path), stream: false, ...fields }),
  });

test.each(["/v1/chat/completions", "/api/chat", "/v1/responses", "/v1/messages"])(
  "%s: chat_template_kwargs reach the template",
  async (path) => {
    const asked = async (fields: object): Promise<ChatRequest> => {
      const response = await post(path, fields);
      expect([response.status, response.ok ? "" : await response.text()]).toEqual([200, ""]);
      return harness.runtime.requests.at(-1) as ChatRequest;
    };
    const variables = { enable_thinking: false, flavour: ["a", { b: 1 }] };
    const given = await asked({ chat_template_kwargs: variables });
    expect([given.think, given.templateVariables]).toEqual([false, variables]);
    expect((await asked({ chat_template_kwargs: { thinking: false } })).think).toBe(false);
    const off = { reasoning: { effort: "none" }, think: false, thinking: { type: "disabled" } };
    expect((await asked({ chat_template_kwargs: { thinking: true }, ...off })).think).toBe(false);
    expect((await asked({ chat_template_kwargs: {} })).templateVariables).toBeUndefined();
  },
);

test.each([
  [7, "chat_template_kwargs: expected an object, got 7"],
  [{ messages: [] }, "chat_template_kwargs.messages: expected another name: the request itself sets this one"],
  [{ enable_thinking: "no" }, 'chat_template_kwargs.enable_thinking: expected true or false, got "no"'],
])("%j: 400", async (given, message) => {
  for (const path of ["/v1/chat/completions", "/v1/responses", "/v1/messages"]) {
    const response = await post(path, { chat_template_kwargs: given });
    expect([response.status, ((await response.json()) as any).error.message]).toEqual([400, message]);
  }
});
