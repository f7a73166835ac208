/** `functions` and `function_call` of `POST /v1/chat/completions`, the predecessors of tools, over real sockets. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import type { ChatRequest, InferenceEvent } from "../../src/runtime/requests/runtime.ts";
import { DONE, hello, play } from "./fakes.ts";
import { framesOf, makeHarness, type Harness } from "./harness.ts";

let harness: Harness;
let url: string;
beforeAll(async () => {
  harness = await makeHarness();
  ({ url } = harness.listen());
});
afterAll(() => harness.close());
beforeEach(() => void (harness.runtime.script = hello));

const parameters = { type: "object", properties: { city: { type: "string" } } };
const functions = [{ name: "weather", description: "The weather", parameters }, { name: "time" }];
const tools = functions.map((each) => ({ type: "function", function: each }));

function post(fields: object): Promise<Response> {
  const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }], ...fields });
  return fetch(`${url}/v1/chat/completions`, { method: "POST", body });
}

const json = async (response: Response): Promise<any> => response.json();
const weather = (city: string): InferenceEvent => ({
  kind: "toolCall",
  call: { function: { name: "weather", arguments: { city } } },
});

async function asked(fields: object): Promise<ChatRequest> {
  expect((await post(fields)).status).toBe(200);
  return harness.runtime.requests.at(-1) as ChatRequest;
}

test("functions and function_call reach the model as tools and tool choice", async () => {
  expect(await asked({ functions })).toMatchObject({ tools });
  expect((await asked({ functions, function_call: "auto" })).toolChoice).toBe("auto");
  expect((await asked({ functions, function_call: "none" })).toolChoice).toBe("none");
  expect((await asked({ functions, function_call: { name: "time" } })).toolChoice).toEqual({ name: "time" });
  expect(await asked({ functions: [], function_call: "auto", tools })).toMatchObject({ tools });
});

test("the first call is answered as function_call", async () => {
  const call = { name: "weather", arguments: '{"city":"Paris"}' };
  harness.runtime.script = play([{ kind: "text", text: "Let me see." }, weather("Paris"), weather("Rome"), DONE]);
  const { choices } = await json(await post({ functions }));
  expect(choices[0].finish_reason).toBe("function_call");
  expect(choices[0].message).toEqual({ role: "assistant", content: "Let me see.", function_call: call });
  const frames: any[] = await framesOf(await post({ functions, stream: true }));
  const all = frames.filter((frame) => frame !== "[DONE]").map(({ choices: [choice] }) => choice);
  expect(all.flatMap(({ delta }) => (delta.function_call ? [delta.function_call] : []))).toEqual([call]);
  expect(all.some(({ delta }) => delta.tool_calls)).toBe(false);
  expect(all.at(-1).finish_reason).toBe("function_call");
});

test("an answer without a call has no function_call", async () => {
  const { choices } = await json(await post({ functions }));
  expect(choices[0]).toMatchObject({ finish_reason: "stop", message: { role: "assistant", content: "Hello" } });
  expect(choices[0].message).not.toHaveProperty("function_call");
});

test.each([
  [{ functions, tools }, "functions: cannot be combined with tools, which replace them"],
  [{ functions: [{}] }, "functions[0].name: expected a name, got none"],
  [{ functions: [...functions, { name: "" }] }, "functions[2].name: expected a name, got none"],
  [{ functions, function_call: "required" }, 'function_call: expected "auto", "none" or {"name": "…"}, got "required"'],
  [{ functions, function_call: 5 }, 'function_call: expected "auto", "none" or {"name": "…"}, got 5'],
  [
    { functions, function_call: { name: "rain" } },
    'function_call.name: expected the name of one of the functions, got "rain"',
  ],
  [{ function_call: { name: "x" } }, 'function_call.name: expected the name of one of the functions, got "x"'],
])("the request %j is refused", async (fields, message) => {
  const response = await post(fields);
  expect([response.status, (await json(response)).error.message]).toEqual([400, message]);
});
