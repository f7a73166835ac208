/** Tool calls by the embedded model, through the `ollama` npm client. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { Ollama } from "ollama";
import { startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(60_000);

let hearth: Hearth;
beforeAll(async () => {
  hearth = await startHearth();
});
afterAll(() => hearth.stop());

test("a tool that clearly fits is called, streamed or not", async () => {
  const city = { type: "string", description: "The name of the city" };
  const tool = {
    type: "function",
    function: {
      name: "get_weather",
      description: "Get the current weather in a city",
      parameters: { type: "object", properties: { city }, required: ["city"] },
    },
  };
  const request = {
    model: "hearth",
    messages: [{ role: "user", content: "What is the weather in Paris?" }],
    tools: [tool],
    options: { temperature: 0, num_predict: 80 },
  };
  const ollama = new Ollama({ host: hearth.url });
  const { message } = await ollama.chat({ ...request, stream: false });
  expect(message.content).toBe("");
  expect(message.tool_calls?.[0]?.function).toMatchObject({ name: "get_weather", arguments: { city: "Paris" } });
  let calls = 0;
  let content = "";
  for await (const part of await ollama.chat({ ...request, stream: true })) {
    calls += part.message.tool_calls?.length ?? 0;
    content += part.message.content;
  }
  expect([calls, content.trim()]).toEqual([1, ""]);
});
