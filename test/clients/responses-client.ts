/**
 * Checks of the Responses API with the `openai` npm client: given a base URL and the name of an installed model that
 * can call tools. They do not depend on the model's answers.
 */
import { expect } from "bun:test";
import OpenAI from "openai";
import { zodResponsesFunction, zodTextFormat } from "openai/helpers/zod";
import type { ResponseInput } from "openai/resources/responses/responses";
import { z } from "zod";
import { NEVER_ENDING, type Target } from "./target.ts";

const clientOf = ({ url }: Target): OpenAI => new OpenAI({ baseURL: `${url}/v1`, apiKey: "any", maxRetries: 0 });

/** A short answer, the same each time. */
const request = ({ model }: Target) => ({
  model,
  instructions: "You are kind.",
  input: "Say hello.",
  max_output_tokens: 16,
  temperature: 0,
});

const WEATHER = zodResponsesFunction({
  name: "get_weather",
  description: "Get the current weather in a city",
  parameters: z.object({ city: z.string().max(20) }),
});
const QUESTION = { role: "user", content: "What is the weather in Paris?" } as const;

/** The helper joins the events, and refuses invalid ones. */
export async function bothWays(target: Target): Promise<void> {
  const client = clientOf(target);
  const whole = await client.responses.create(request(target));
  expect(whole).toMatchObject({ object: "response", model: target.model, instructions: "You are kind.", error: null });
  expect(["completed", "incomplete"]).toContain(whole.status!);
  expect(whole.output_text.length).toBeGreaterThan(0);
  expect(whole.usage!.total_tokens).toBe(whole.usage!.input_tokens + whole.usage!.output_tokens);
  expect(whole._request_id).toMatch(/^req_/);
  const stream = client.responses.stream(request(target));
  let text = "";
  stream.on("response.output_text.delta", ({ delta }) => (text += delta));
  const streamed = await stream.finalResponse();
  expect([streamed.output_text, text]).toEqual([whole.output_text, whole.output_text]);
  const ended = ({ status, usage }: typeof whole) => [status, usage!.input_tokens, usage!.output_tokens];
  expect(ended(streamed)).toEqual(ended(whole));
  const { cached_tokens } = streamed.usage!.input_tokens_details;
  expect(cached_tokens).toBeGreaterThan(0); // the same prompt was processed just before
}

/** A call, in both modes, its result, and the answer to that. */
export async function toolLoop(target: Target): Promise<void> {
  const client = clientOf(target);
  const asking = { model: target.model, temperature: 0, tools: [WEATHER], max_output_tokens: 100 };
  const first = await client.responses.parse({ ...asking, input: [QUESTION] });
  const calls = first.output.filter((item) => item.type === "function_call");
  expect(calls).toMatchObject([{ name: "get_weather", parsed_arguments: { city: "Paris" }, status: "completed" }]);
  const streamed = await client.responses.stream({ ...asking, input: [QUESTION] }).finalResponse();
  expect(streamed.output).toMatchObject([
    { type: "function_call", name: "get_weather", arguments: calls[0]!.arguments },
  ]);
  const { call_id } = calls[0]!;
  const input = [QUESTION, ...first.output, { type: "function_call_output", call_id, output: "18 degrees" }];
  const last = await client.responses.create({ ...asking, input: input as ResponseInput });
  expect(last.usage!.input_tokens).toBeGreaterThan(first.usage!.input_tokens);
}

/** An answer that fits a schema, whole and streamed. */
export async function structuredOutput(target: Target): Promise<void> {
  const client = clientOf(target);
  const shape = z.object({ ok: z.boolean(), colour: z.enum(["red", "green"]) });
  const asking = { ...request(target), max_output_tokens: 100, text: { format: zodTextFormat(shape, "answer") } };
  const parsed = await client.responses.parse(asking);
  expect(shape.parse(parsed.output_parsed)).toEqual(parsed.output_parsed!);
  const streamed = await client.responses.stream(asking).finalResponse();
  expect(streamed.output_parsed).toEqual(parsed.output_parsed);
}

/** A required call fits its schema, whatever the question. */
export async function forcedCall(target: Target): Promise<void> {
  const client = clientOf(target);
  const shape = z.object({ ok: z.boolean(), colour: z.enum(["red", "green"]) });
  const tools = [WEATHER, zodResponsesFunction({ name: "answer", parameters: shape })];
  const asking = { ...request(target), max_output_tokens: 100, tools };
  for (const tool_choice of ["required", { type: "function", name: "answer" }] as const) {
    const { output, status } = await client.responses.create({ ...asking, tool_choice });
    expect([tool_choice, status, output.length]).toEqual([tool_choice, "completed", 1]);
    const [call] = output;
    if (call?.type !== "function_call") throw new Error(`expected a call, got ${call?.type}`);
    if (tool_choice !== "required") expect(call.name).toBe("answer");
    if (call.name === "answer") expect(shape.safeParse(JSON.parse(call.arguments)).error).toBeUndefined();
  }
  const none = await client.responses.create({ ...asking, tool_choice: "none" });
  expect(none.output.map(({ type }) => type)).toEqual(["message"]);
}

/** The model's output is sent back as input, in the client's own form. */
export async function conversation(target: Target): Promise<void> {
  const client = clientOf(target);
  const first = await client.responses.create(request(target));
  const input = [{ role: "user", content: "Say hello." }, ...first.output, { role: "user", content: "Again." }];
  const second = await client.responses.create({ ...request(target), input: input as ResponseInput });
  const { input_tokens, output_tokens } = first.usage!;
  expect(second.usage!.input_tokens).toBeGreaterThan(input_tokens + output_tokens);
}

/** The server keeps the conversation: a call, its result and the next question refer to the last response. */
export async function keptConversation(target: Target): Promise<void> {
  const { responses } = clientOf(target);
  const asking = { model: target.model, temperature: 0, tools: [WEATHER], max_output_tokens: 100 };
  const first = await responses.create({ ...asking, input: [QUESTION] });
  const [call] = first.output;
  if (call?.type !== "function_call") throw new Error(`expected a call, got ${call?.type}`);
  const result = { type: "function_call_output", call_id: call.call_id, output: "18 degrees" } as const;
  const second = await responses.create({ ...asking, input: [result], previous_response_id: first.id });
  const whole = await responses.create({ ...asking, store: false, input: [QUESTION, call, result] });
  expect([second.output_text, second.usage!.input_tokens]).toEqual([whole.output_text, whole.usage!.input_tokens]);
  const items = await responses.inputItems.list(second.id, { order: "asc" });
  expect(items.data.map(({ type }) => type)).toEqual(["message", "function_call", "function_call_output"]);
  await responses.delete(second.id);
  const gone = await responses.retrieve(second.id).catch((error: unknown) => error);
  expect(gone).toBeInstanceOf(OpenAI.NotFoundError);
}

/** Leaving the loop closes the connection and stops the model; the server serves on. */
export async function abort(target: Target): Promise<void> {
  const text = { format: { type: "json_schema", name: "n", schema: NEVER_ENDING } } as const;
  const stream = await clientOf(target).responses.create({
    ...request(target),
    max_output_tokens: 100_000,
    text,
    stream: true,
  });
  for await (const event of stream) if (event.type === "response.output_text.delta") break;
  expect(stream.controller.signal.aborted).toBe(true);
  await clientOf(target).responses.create({ ...request(target), max_output_tokens: 1 });
}

export async function clearErrors(target: Target): Promise<void> {
  const client = clientOf(target);
  const failure = (body: object): Promise<unknown> =>
    client.responses.create({ ...request(target), ...body }).catch((error: unknown) => error);
  const missing = await failure({ model: "nope" });
  expect(missing).toBeInstanceOf(OpenAI.NotFoundError);
  expect(missing).toMatchObject({ type: "not_found_error", requestID: expect.stringMatching(/^req_/) });
  expect((missing as Error).message).toContain("model 'nope' not found");
  expect(await failure({ model: "nope", stream: true })).toBeInstanceOf(OpenAI.NotFoundError);
  expect(await failure({ previous_response_id: "resp_1" })).toBeInstanceOf(OpenAI.BadRequestError);
}

/** The count of an input equals the usage of its response. */
export async function countTokens(target: Target): Promise<void> {
  const client = clientOf(target);
  const { model, instructions, input } = request(target);
  for (const more of [{}, { tools: [WEATHER] }]) {
    const { input_tokens } = await client.responses.inputTokens.count({ model, instructions, input, ...more });
    const { usage } = await client.responses.create({ ...request(target), ...more });
    expect(input_tokens).toBe(usage!.input_tokens);
  }
}

/** All checks by name. */
export const CHECKS: Readonly<Record<string, (target: Target) => Promise<void>>> = {
  "responses, streaming and not": bothWays,
  "a tool call and its result": toolLoop,
  "structured output": structuredOutput,
  "a call that must be made": forcedCall,
  conversation,
  "a conversation that the server keeps": keptConversation,
  "input tokens": countTokens,
  abort,
  "clear errors": clearErrors,
};
