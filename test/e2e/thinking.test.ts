/**
 * Thinking by a real model. The embedded one does not think, so templates declare predictable parts of its answer as
 * thinking.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { eventsOf } from "../server/sse-frames.ts";
import { ndjson, startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(120_000);

/** A template with these thinking tags. `opens`: the prompt ends with the opening one. */
const template = (open: string, close: string, opens = false): string =>
  "{{ range .Messages }}<|im_start|>{{ .Role }}\n" +
  `{{ if .Thinking }}${open}{{ .Thinking }}${close}{{ end }}{{ .Content }}<|im_end|>\n{{ end }}` +
  `<|im_start|>assistant\n${opens ? open : ""}{{ if and .IsThinkSet (not .Think) }}My{{ end }}`;

const ANSWER = "My name is Hearth. I am a small language model that runs on your own machine.";
const question = { role: "user", content: "Hello! Who are you?" };
const options = { temperature: 0, num_predict: 60 };

let hearth: Hearth;
beforeAll(async () => {
  hearth = await startHearth();
  const models = {
    thinker: template("My name", "Hearth."),
    opened: template("My name", "Hearth.", true),
    // these models do not end their thoughts themselves
    "lost-thinker": template("My name", "</think>"),
    "lost-opened": template("<think>", "</think>", true),
  };
  for (const [model, text] of Object.entries(models)) {
    const response = await hearth.post("/api/create", { model, from: "hearth", template: text, stream: false });
    expect(await response.json()).toEqual({ status: "success" });
  }
});
afterAll(() => hearth.stop());

async function chat(body: object): Promise<Record<string, any>> {
  const response = await hearth.post("/api/chat", { messages: [question], options, stream: false, ...body });
  return { status: response.status, ...((await response.json()) as object) };
}

describe("POST /api/chat", () => {
  test("without think, a model that can think does, and its thoughts are in message.thinking", async () => {
    const { message } = await chat({ model: "thinker" });
    expect(message).toEqual({ role: "assistant", content: ANSWER.slice(19), thinking: "is" });
  });

  test("thoughts whose opening tag is in the prompt are in message.thinking, too", async () => {
    const { message } = await chat({ model: "opened", think: true });
    expect(message).toEqual({ role: "assistant", content: ANSWER.slice(19), thinking: "is" });
  });

  test("streams thinking before content, without the tags", async () => {
    const response = await hearth.post("/api/chat", { model: "thinker", messages: [question], options });
    let thinking = "";
    let content = "";
    for await (const { message } of ndjson(response)) {
      if (message.thinking) expect(content).toBe("");
      thinking += message.thinking ?? "";
      content += message.content;
    }
    expect([thinking, content]).toEqual(["is", ANSWER.slice(19)]);
  });

  test("think: false reaches the template, and is not an error for a model that cannot think", async () => {
    const { message } = await chat({ model: "thinker", think: false });
    expect(message).toEqual({ role: "assistant", content: ANSWER.slice(2) });
    expect((await chat({ model: "hearth", think: false })).message.content).toBe(ANSWER);
  });

  test("think: true is an error for a model that cannot think", async () => {
    const expected = { status: 400, error: '"hearth" does not support thinking' };
    expect(await chat({ model: "hearth", think: true })).toEqual(expected);
    expect(await chat({ model: "hearth", think: "high" })).toEqual(expected);
  });

  test("format limits the answer after the thoughts, and eval_count includes the thoughts", async () => {
    const format = { type: "object", properties: { n: { type: "integer", minimum: 1, maximum: 9 } }, required: ["n"] };
    for (const model of ["thinker", "opened"]) {
      const { message, eval_count, done_reason, prompt_eval_count } = await chat({ model, format });
      expect([message.thinking, done_reason]).toEqual(["is", "stop"]);
      expect(message.content).toMatch(/^\s*\{\s*"n":\s*[1-9]\s*\}$/);
      expect(eval_count).toBeGreaterThan(5);
      expect(prompt_eval_count).toBeLessThan(30);
    }
  });

  test("format limits the answer of a model that does not think, too", async () => {
    const name = "thoughtless";
    await (await hearth.post("/api/create", { model: name, from: "hearth", template: template("@@", "##") })).text();
    const { message } = await chat({ model: name, format: "json", options: { ...options, num_predict: 300 } });
    expect(message.thinking).toBeUndefined();
    expect(message.content).toStartWith("{");
  });

  test("num_predict limits thoughts and answer together", async () => {
    const format = { type: "string", minLength: 60 };
    const thoughts = (await chat({ model: "thinker" })).message.thinking;
    for (const num_predict of [3, 12]) {
      const { message, done_reason, eval_count } = await chat({
        model: "thinker",
        format,
        options: { temperature: 0, num_predict },
      });
      expect([done_reason, eval_count, message.content === ""]).toEqual(["length", num_predict, num_predict === 3]);
      if (num_predict === 12) expect(message.thinking).toBe(thoughts);
    }
  });
});

test("POST /api/generate has thoughts in the field thinking, and their tokens in the context", async () => {
  const body = { model: "thinker", prompt: question.content, options, stream: false };
  const first = (await (await hearth.post("/api/generate", body)).json()) as Record<string, any>;
  expect([first["response"], first["thinking"]]).toEqual([ANSWER.slice(19), "is"]);
  expect(first["context"].length).toBe(first["prompt_eval_count"] + first["eval_count"]);
});

describe("a thinking budget", () => {
  const limits = { temperature: 0, stream: true };
  const messages = [question];
  const sse = async (path: string, body: object): Promise<any[]> =>
    (await eventsOf(await hearth.post(path, body))).map(({ data }) => data);
  const lines = async (path: string, body: object): Promise<any[]> =>
    Array.fromAsync(ndjson(await hearth.post(path, body)));
  /** The pieces of thinking in a stream: a token each. */
  const DIALECTS: Readonly<Record<string, (model: string, budget: number) => Promise<string[]>>> = {
    "/api/chat": async (model, thinking_budget) =>
      (await lines("/api/chat", { model, messages, options: { ...options, thinking_budget } })).map(
        ({ message }) => message.thinking,
      ),
    "/api/chat with a format": async (model, thinking_budget) =>
      (await lines("/api/chat", { model, messages, format: "json", options: { ...options, thinking_budget } })).map(
        ({ message }) => message.thinking,
      ),
    "/api/generate": async (model, thinking_budget) =>
      (await lines("/api/generate", { model, prompt: question.content, options: { ...options, thinking_budget } })).map(
        ({ thinking }) => thinking,
      ),
    "/v1/chat/completions": async (model, max_tokens) =>
      (
        await sse("/v1/chat/completions", { ...limits, model, messages, max_tokens: 60, reasoning: { max_tokens } })
      ).map(({ choices }) => choices?.[0]?.delta.reasoning),
    "/v1/responses": async (model, max_tokens) =>
      (await sse("/v1/responses", { ...limits, model, input: question.content, reasoning: { max_tokens } })).map(
        ({ type, delta }) => (type === "response.reasoning_summary_text.delta" ? delta : undefined),
      ),
    "/v1/messages": async (model, budget_tokens) =>
      (
        await sse("/v1/messages", {
          ...limits,
          model,
          messages,
          max_tokens: 60,
          thinking: { type: "enabled", budget_tokens },
        })
      ).map(({ delta }) => delta?.thinking),
  };

  test.each(Object.keys(DIALECTS))("is the exact number of thinking tokens in %s", async (dialect) => {
    for (const model of ["lost-thinker", "lost-opened"])
      for (const budget of [0, 1, 5]) {
        const thoughts = (await DIALECTS[dialect]!(model, budget)).filter(Boolean);
        expect([model, budget, thoughts.length]).toEqual([model, budget, budget]);
      }
  });
});
