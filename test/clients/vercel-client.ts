/** Checks of a server with the `ai` package and `ollama-ai-provider-v2`. */
import {
  embedMany,
  generateText,
  isStepCount,
  jsonSchema,
  Output,
  streamText,
  tool,
  type APICallError,
  type JSONSchema7,
} from "ai";
import { expect } from "bun:test";
import { createOllama } from "ollama-ai-provider-v2";
import { z } from "zod";
import { NEVER_ENDING, TOOL, weatherIn, type Target } from "./target.ts";

/** The provider passes on `options` only. */
const options = (num_predict: number) => ({ ollama: { options: { num_predict, temperature: 0 } } });
const providerOf = ({ url }: Target) => createOllama({ baseURL: `${url}/api` });

/** Whole and streamed: the same text, and counts. */
export async function chatBothWays(target: Target): Promise<void> {
  const request = {
    model: providerOf(target)(target.model),
    system: "You are kind.",
    prompt: "Say hello.",
    providerOptions: options(8),
    maxRetries: 0,
  };
  const whole = await generateText(request);
  expect(whole.text).not.toBe("");
  expect(whole.finishReason).toBeOneOf(["stop", "length"]);
  expect(whole.usage.outputTokens).toBeGreaterThan(0);
  const stream = streamText(request);
  let text = "";
  for await (const part of stream.textStream) text += part;
  expect(text).toBe(whole.text);
  expect((await stream.usage).outputTokens).toBe(whole.usage.outputTokens!);
}

/** The client calls the tool itself, sends the result, and gets an answer. */
export async function tools(target: Target): Promise<void> {
  const asked: string[] = [];
  const { name, description } = TOOL.function;
  const inputSchema = z.object({ city: z.string().describe("The name of the city") });
  const weather = tool({
    description,
    inputSchema,
    execute: ({ city }) => {
      asked.push(city);
      return weatherIn(city);
    },
  });
  const request = {
    model: providerOf(target)(target.model),
    prompt: "What is the weather in Paris?",
    tools: { [name]: weather },
    stopWhen: isStepCount(2),
    providerOptions: options(80),
    maxRetries: 0,
  };
  const { text, steps } = await generateText(request);
  expect([asked, steps.length, text !== ""]).toEqual([["Paris"], 2, true]);
  expect(steps[0]!.finishReason).toBe("tool-calls");
  expect(await streamText(request).text).toBe(text);
  expect(asked).toEqual(["Paris", "Paris"]);
  const forced = { ...request, prompt: "Say hello.", stopWhen: isStepCount(1), toolChoice: "required" as const };
  expect((await generateText(forced)).toolCalls.map((call) => call.toolName)).toContain(name);
}

export async function structuredOutput(target: Target): Promise<void> {
  const request = {
    model: providerOf(target)(target.model),
    prompt: "Reply with a JSON object.",
    output: Output.object({ schema: z.strictObject({ ok: z.boolean() }) }),
    providerOptions: options(200),
    maxRetries: 0,
  };
  expect((await generateText(request)).output).toEqual({ ok: expect.any(Boolean) });
  expect(await streamText(request).output).toEqual({ ok: expect.any(Boolean) });
}

/**
 * The completion model, through `/api/generate`. It expects `context` in each streamed piece, but only the last one has
 * it.
 */
export async function completion(target: Target): Promise<void> {
  const model = providerOf(target).completion(target.model);
  const { text } = await generateText({ model, prompt: "Say hello.", maxRetries: 0 });
  expect(text).not.toBe("");
}

export async function embeddings(target: Target): Promise<void> {
  const model = providerOf(target).embeddingModel(target.model);
  const { embeddings: found, usage } = await embedMany({ model, values: ["one", "two words"], maxRetries: 0 });
  expect(found.map(({ length }) => length > 1)).toEqual([true, true]);
  expect(usage.tokens).toBeGreaterThan(0);
}

/** The status, and a body with the reason: this client reads error messages only in another API's format. */
export async function clearErrors(target: Target): Promise<void> {
  const model = providerOf(target)("does-not-exist");
  const error: APICallError = await generateText({ model, prompt: "hi", maxRetries: 0 }).catch((thrown) => thrown);
  expect([error.statusCode, error.isRetryable]).toEqual([404, false]);
  expect(JSON.parse(error.responseBody!)).toEqual({ error: "model 'does-not-exist' not found" });
}

/** The signal closes the connection, and the server serves on. */
export async function abort(target: Target): Promise<void> {
  const gone = new AbortController();
  const stream = streamText({
    model: providerOf(target)(target.model),
    prompt: "Count.",
    output: Output.object({ schema: jsonSchema(NEVER_ENDING as JSONSchema7) }),
    providerOptions: options(100_000),
    abortSignal: gone.signal,
    maxRetries: 0,
  });
  const kinds: string[] = [];
  for await (const { type } of stream.fullStream) {
    kinds.push(type);
    if (type === "text-delta") gone.abort();
  }
  expect(kinds).toContain("abort");
  await chatBothWays(target);
}

/** All checks by name. */
export const CHECKS: Readonly<Record<string, (target: Target) => Promise<void>>> = {
  "chat, streaming and not": chatBothWays,
  tools,
  "structured output": structuredOutput,
  completion,
  embeddings,
  "clear errors": clearErrors,
  abort,
};
