/** Checks of a server with the `openai` npm client. */
import { expect } from "bun:test";
import OpenAI, { APIError, APIUserAbortError, BadRequestError, NotFoundError } from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";
import { NEVER_ENDING, TOOL, weatherIn, type Target } from "./target.ts";

const MESSAGES = [{ role: "user" as const, content: "Say hello." }];
/** Short answers, the same each time. */
const SHORT = { max_completion_tokens: 8, temperature: 0, seed: 1 };
const ASK = [{ role: "user" as const, content: "What is the weather in Paris?" }];
/** A schema that no finite answer satisfies. */
const NEVER = { type: "json_schema" as const, json_schema: { name: "node", schema: NEVER_ENDING } };

const clientOf = ({ url }: Target): OpenAI => new OpenAI({ baseURL: `${url}/v1`, apiKey: "none", maxRetries: 0 });

/** A standard promise: the client's own starts nothing before it is awaited. */
const started = async (request: PromiseLike<unknown>): Promise<unknown> => request;

async function collect<T>(parts: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const part of parts) found.push(part);
  return found;
}

/** Streamed and not: the same text; counts if requested. */
export async function chatBothWays(target: Target): Promise<void> {
  const request = { model: target.model, messages: MESSAGES, ...SHORT };
  const whole = await clientOf(target).chat.completions.create(request);
  const [choice] = whole.choices;
  expect(whole).toMatchObject({
    object: "chat.completion",
    model: target.model,
    id: expect.stringMatching(/^chatcmpl-/),
  });
  expect(choice?.message.role).toBe("assistant");
  expect(["stop", "length"]).toContain(choice!.finish_reason);
  const { prompt_tokens, completion_tokens, total_tokens } = whole.usage!;
  expect([prompt_tokens > 0, completion_tokens > 0, total_tokens]).toEqual([
    true,
    true,
    prompt_tokens + completion_tokens,
  ]);
  const stream_options = { include_usage: true };
  const parts = await collect(
    await clientOf(target).chat.completions.create({ ...request, stream: true, stream_options }),
  );
  expect(parts.map((part) => part.choices[0]?.delta.content ?? "").join("")).toBe(choice!.message.content ?? "none");
  expect(parts.at(-1)?.usage?.total_tokens).toBe(total_tokens);
  expect(parts.at(-2)?.choices[0]?.finish_reason).toBe(choice!.finish_reason);
  expect(new Set(parts.map((part) => part.id)).size).toBe(1);
}

/** The client's own stream helper, which joins the chunks. */
export async function streamHelper(target: Target): Promise<void> {
  const stream = clientOf(target).chat.completions.stream({ model: target.model, messages: MESSAGES, ...SHORT });
  let text = "";
  stream.on("content", (delta) => void (text += delta));
  const final = await stream.finalChatCompletion();
  expect(final.choices[0]?.message.content).toBe(text);
  expect(text).not.toBe("");
}

/** Roles and parts that only this API has. */
export async function partsAndRoles(target: Target): Promise<void> {
  const { choices } = await clientOf(target).chat.completions.create({
    model: target.model,
    messages: [
      { role: "developer", content: "Be brief." },
      {
        role: "user",
        content: [
          { type: "text", text: "Say" },
          { type: "text", text: "hello." },
        ],
      },
    ],
    ...SHORT,
  });
  expect(choices[0]?.message.content).not.toBe("");
}

/** A call, streamed and not. */
export async function toolCalls(target: Target): Promise<void> {
  const request = { model: target.model, messages: ASK, tools: [TOOL], temperature: 0, max_completion_tokens: 80 };
  const { choices } = await clientOf(target).chat.completions.create(request);
  expect(choices[0]?.finish_reason).toBe("tool_calls");
  const [call] = choices[0]?.message.tool_calls ?? [];
  expect(call).toMatchObject({
    id: expect.stringMatching(/^call_/),
    type: "function",
    function: { name: "get_weather" },
  });
  expect(call?.type === "function" && JSON.parse(call.function.arguments)).toEqual({ city: "Paris" });
  const final = await clientOf(target).chat.completions.stream(request).finalChatCompletion();
  const [streamed] = final.choices[0]?.message.tool_calls ?? [];
  expect(streamed?.type === "function" && streamed.function).toMatchObject({
    name: "get_weather",
    arguments: '{"city":"Paris"}',
  });
  expect(final.choices[0]?.finish_reason).toBe("tool_calls");
}

/** A call may be forced, forbidden, or of one tool; and limited to one. */
export async function toolChoice(target: Target): Promise<void> {
  const other = { ...TOOL, function: { ...TOOL.function, name: "get_time", description: "Get the time in a city" } };
  const ask = async (fields: object): Promise<string[]> => {
    const { choices } = await clientOf(target).chat.completions.create({
      model: target.model,
      messages: MESSAGES,
      tools: [TOOL, other],
      temperature: 0,
      max_completion_tokens: 80,
      ...fields,
    });
    const calls = choices[0]?.message.tool_calls ?? [];
    expect(choices[0]!.finish_reason === "tool_calls").toBe(calls.length > 0);
    return calls.map((call) => (call.type === "function" ? call.function.name : call.type));
  };
  expect((await ask({ tool_choice: "required" })).length).toBeGreaterThan(0);
  expect(await ask({ tool_choice: "required", parallel_tool_calls: false })).toHaveLength(1);
  expect(new Set(await ask({ tool_choice: { type: "function", function: { name: "get_time" } } }))).toEqual(
    new Set(["get_time"]),
  );
  expect(await ask({ tool_choice: "none", messages: ASK })).toEqual([]);
}

/** The client calls the tool itself, sends the result, and gets an answer. */
export async function toolLoop(target: Target): Promise<void> {
  const asked: string[] = [];
  const runner = clientOf(target).chat.completions.runTools({
    model: target.model,
    messages: ASK,
    tools: [
      {
        type: "function",
        function: {
          ...TOOL.function,
          parse: (text: string) => JSON.parse(text) as { city: string },
          function: ({ city }: { city: string }) => {
            asked.push(city);
            return weatherIn(city);
          },
        },
      },
    ],
    temperature: 0,
    max_completion_tokens: 80,
  });
  expect(await runner.finalContent()).not.toBe("");
  expect(asked).toEqual(["Paris"]);
  expect(runner.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "assistant"]);
}

/** A schema by zod, parsed by the client, and any JSON object. */
export async function structuredOutput(target: Target): Promise<void> {
  const messages = [{ role: "user" as const, content: "Reply with a JSON object." }];
  const request = { model: target.model, messages, temperature: 0, max_completion_tokens: 200 };
  const response_format = zodResponseFormat(z.strictObject({ ok: z.boolean() }), "reply");
  const { choices } = await clientOf(target).chat.completions.parse({ ...request, response_format });
  expect(choices[0]?.message.parsed).toEqual({ ok: expect.any(Boolean) });
  const free = await clientOf(target).chat.completions.create({ ...request, response_format: { type: "json_object" } });
  const { finish_reason, message } = free.choices[0]!;
  if (finish_reason === "stop") expect(JSON.parse(message.content!)).toBeObject();
}

/** One entry per token, with the text of the answer. */
export async function logprobs(target: Target): Promise<void> {
  const { choices, usage } = await clientOf(target).chat.completions.create({
    model: target.model,
    messages: MESSAGES,
    ...SHORT,
    logprobs: true,
    top_logprobs: 2,
  });
  const content = choices[0]?.logprobs?.content ?? [];
  expect(content.length).toBeGreaterThan(0);
  expect(content.length).toBeLessThanOrEqual(usage!.completion_tokens);
  expect(content.map(({ token }) => token).join("")).toStartWith(choices[0]!.message.content!);
  for (const { logprob, top_logprobs: tops } of content) {
    expect([logprob <= 0, tops.length]).toEqual([true, 2]);
    expect(tops[0]!.logprob).toBeGreaterThanOrEqual(logprob); // best first
  }
}

export async function completions(target: Target): Promise<void> {
  const request = { model: target.model, prompt: "Say hello.", max_tokens: 8, temperature: 0 };
  const whole = await clientOf(target).completions.create(request);
  expect(whole).toMatchObject({ object: "text_completion", id: expect.stringMatching(/^cmpl-/) });
  const parts = await collect(await clientOf(target).completions.create({ ...request, stream: true }));
  expect(parts.map((part) => part.choices[0]?.text).join("")).toBe(whole.choices[0]!.text);
  expect(parts.at(-1)?.choices[0]?.finish_reason).toBe(whole.choices[0]!.finish_reason);
}

/** In base64, the client's default, and as numbers: the same vectors. */
export async function embeddings(target: Target): Promise<void> {
  const request = { model: target.model, input: ["one", "two words"] };
  const packed = await clientOf(target).embeddings.create(request);
  const plain = await clientOf(target).embeddings.create({ ...request, encoding_format: "float" });
  expect(packed.data.map(({ index }) => index)).toEqual([0, 1]);
  expect(packed.data.map(({ embedding }) => Array.from(embedding, Math.fround))).toEqual(
    plain.data.map(({ embedding }) => embedding.map(Math.fround)),
  );
  expect(packed.data[0]!.embedding.length).toBeGreaterThan(1);
  expect(packed.usage.prompt_tokens).toBeGreaterThan(0);
  const single = await clientOf(target).embeddings.create({ ...request, input: "one" });
  expect(single.data).toHaveLength(1);
}

export async function models(target: Target): Promise<void> {
  const found = await collect(clientOf(target).models.list());
  expect(found.map(({ id }) => id)).toContain(target.model);
  expect(await clientOf(target).models.retrieve(target.model)).toMatchObject({ id: target.model, object: "model" });
  await expect(started(clientOf(target).models.retrieve("who/nope:1"))).rejects.toBeInstanceOf(NotFoundError);
}

export async function clearErrors(target: Target): Promise<void> {
  const { completions: chat } = clientOf(target).chat;
  const missing = chat.create({ model: "does-not-exist", messages: MESSAGES });
  await expect(started(missing)).rejects.toMatchObject({
    status: 404,
    type: "not_found_error",
    message: expect.stringContaining("model 'does-not-exist' not found"),
  });
  const streamed = chat.create({ model: "does-not-exist", messages: MESSAGES, stream: true });
  await expect(started(streamed)).rejects.toBeInstanceOf(NotFoundError);
  const many = chat.create({ model: target.model, messages: MESSAGES, n: 17 });
  await expect(started(many)).rejects.toBeInstanceOf(BadRequestError);
  const empty = clientOf(target).embeddings.create({ model: target.model, input: [] });
  await expect(started(empty)).rejects.toBeInstanceOf(APIError);
}

/** `abort` ends the stream, and the server serves on. */
export async function abort(target: Target): Promise<void> {
  const stream = await clientOf(target).chat.completions.create({
    model: target.model,
    messages: MESSAGES,
    response_format: NEVER,
    max_completion_tokens: 100_000,
    stream: true,
  });
  const ends: unknown[] = [];
  for await (const { choices } of stream) {
    ends.push(...choices.map(({ finish_reason }) => finish_reason));
    if (ends.length === 2) stream.controller.abort(); // parts that have arrived with the second may follow
  }
  expect(new Set(ends)).toEqual(new Set([null]));
  const gone = new AbortController();
  const request = { model: target.model, messages: MESSAGES, response_format: NEVER, max_completion_tokens: 100_000 };
  const whole = started(clientOf(target).chat.completions.create(request, { signal: gone.signal }));
  setTimeout(() => gone.abort(), 100);
  await expect(whole).rejects.toBeInstanceOf(APIUserAbortError);
  await chatBothWays(target);
}

/** All checks by name. */
export const CHECKS: Readonly<Record<string, (target: Target) => Promise<void>>> = {
  "chat, streaming and not": chatBothWays,
  "the stream helper": streamHelper,
  "parts and roles": partsAndRoles,
  "tool calls": toolCalls,
  "tool choice": toolChoice,
  "runTools, to the end of the loop": toolLoop,
  "structured output": structuredOutput,
  logprobs,
  completions,
  embeddings,
  models,
  "clear errors": clearErrors,
  abort,
};
