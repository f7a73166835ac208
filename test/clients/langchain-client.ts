/** Checks of a server with `@langchain/ollama`. It always streams. */
import { AIMessage, type AIMessageChunk, HumanMessage, ToolMessage } from "@langchain/core/messages";
import { ChatOllama, Ollama, OllamaEmbeddings, type ChatOllamaInput } from "@langchain/ollama";
import { expect } from "bun:test";
import { z } from "zod";
import { NEVER_ENDING, TOOL, weatherIn, type Target } from "./target.ts";

const ASK = new HumanMessage("What is the weather in Paris?");

const chatOf = ({ url, model }: Target, fields: ChatOllamaInput = {}): ChatOllama =>
  new ChatOllama({ baseUrl: url, model, temperature: 0, numPredict: 8, maxRetries: 0, ...fields });

/** Whole and streamed: the same text, and counts. */
export async function chatBothWays(target: Target): Promise<void> {
  const whole = await chatOf(target).invoke("Say hello.");
  expect(whole.content).not.toBe("");
  expect(structuredClone(whole.usage_metadata)).toMatchObject({ output_tokens: expect.any(Number) });
  expect(whole.response_metadata["done_reason"]).toBeOneOf(["stop", "length"]);
  let sum: AIMessageChunk | undefined;
  for await (const part of await chatOf(target).stream("Say hello.")) sum = sum ? sum.concat(part) : part;
  expect(sum?.content).toBe(whole.content);
  expect(sum?.usage_metadata).toEqual(whole.usage_metadata!);
}

/** A call, its result, and the answer. */
export async function tools(target: Target): Promise<void> {
  const chat = chatOf(target, { numPredict: 80 }).bindTools([TOOL]);
  const { tool_calls: calls = [] } = await chat.invoke([ASK]);
  expect(calls).toEqual([expect.objectContaining({ name: "get_weather", args: { city: "Paris" } })]);
  const [call] = calls;
  const answer = await chat.invoke([
    ASK,
    new AIMessage({ content: "", tool_calls: calls }),
    new ToolMessage({ content: weatherIn("Paris"), tool_call_id: call!.id ?? "" }),
  ]);
  expect(answer.content).not.toBe("");
  expect(answer.tool_calls).toEqual([]);
  let streamed = 0;
  for await (const part of await chat.stream([ASK])) streamed += part.tool_calls?.length ?? 0;
  expect(streamed).toBe(1);
}

/** A zod schema, which is sent with `$schema`; any JSON; and a tool, if the model has tools. */
export async function structuredOutput(target: Target): Promise<void> {
  const shape = z.strictObject({ ok: z.boolean() });
  const chat = chatOf(target, { numPredict: 200 });
  const fitting = chat.withStructuredOutput(shape);
  expect(await fitting.invoke("Reply with a JSON object.")).toEqual({ ok: expect.any(Boolean) });
  const free = await chat.withConfig({ format: "json" }).invoke("Reply with a JSON object.");
  if (free.response_metadata["done_reason"] === "stop") expect(JSON.parse(free.text)).toBeObject();
}

/** The completion model, by `/api/generate`. */
export async function completion(target: Target): Promise<void> {
  const llm = new Ollama({ baseUrl: target.url, model: target.model, temperature: 0, numPredict: 8, maxRetries: 0 });
  const text = await llm.invoke("Say hello.");
  expect(text).not.toBe("");
  let streamed = "";
  for await (const part of await llm.stream("Say hello.")) streamed += part;
  expect(streamed).toBe(text);
}

export async function embeddings(target: Target): Promise<void> {
  const embedder = new OllamaEmbeddings({ baseUrl: target.url, model: target.model, maxRetries: 0 });
  const [one, two] = await embedder.embedDocuments(["one", "two words"]);
  expect(one!.length).toBeGreaterThan(1);
  expect(two).toHaveLength(one!.length);
  expect((await embedder.embedQuery("one")).map(Math.fround)).toEqual(one!.map(Math.fround));
}

/** An installed model is not pulled; if it cannot be pulled, the error says so. */
export async function checkOrPullModel(target: Target): Promise<void> {
  const answer = await chatOf(target, { checkOrPullModel: true }).invoke("Say hello.");
  expect(answer.content).not.toBe("");
  const model = "127.0.0.1:1/who/nope"; // a port without a server
  await expect(chatOf({ ...target, model }, { checkOrPullModel: true }).invoke("hi")).rejects.toThrow("127.0.0.1:1");
}

export async function clearErrors(target: Target): Promise<void> {
  const missing = chatOf({ ...target, model: "does-not-exist" }).invoke("hi");
  await expect(missing).rejects.toThrow("model 'does-not-exist' not found");
  // a value from untyped JavaScript
  const option = chatOf(target, { temperature: "hot" as unknown as number }).invoke("hi");
  await expect(option).rejects.toThrow('option "temperature" must be of type float32');
}

/** The signal closes the connection, which leaving the loop does not; the server keeps working. */
export async function abort(target: Target): Promise<void> {
  const chat = chatOf(target, { numPredict: 100_000, format: NEVER_ENDING });
  const gone = new AbortController();
  const read = async (): Promise<void> => {
    for await (const _part of await chat.stream("Count.", { signal: gone.signal })) gone.abort();
  };
  await read().catch((error: Error) => expect(error.name).toBe("AbortError"));
  await chatBothWays(target);
}

/** All checks by name. */
export const CHECKS: Readonly<Record<string, (target: Target) => Promise<void>>> = {
  "chat, streaming and not": chatBothWays,
  tools,
  "structured output": structuredOutput,
  completion,
  embeddings,
  checkOrPullModel,
  "clear errors": clearErrors,
  abort,
};
