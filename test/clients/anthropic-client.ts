/**
 * Checks of a server with the `@anthropic-ai/sdk` npm client: given a base URL and the name of an installed model that
 * can call tools. They do not depend on the model's answers.
 */
import Anthropic from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { expect } from "bun:test";
import { z } from "zod";
import { NEVER_ENDING, type Target } from "./target.ts";

type Params = Anthropic.MessageCreateParamsNonStreaming;

const clientOf = ({ url }: Target): Anthropic => new Anthropic({ baseURL: url, apiKey: "any", maxRetries: 0 });

/** Deterministic answers. The client passes on fields that its types lack. */
const STEADY: object = { temperature: 0 };

/** A short answer. */
const request = ({ model }: Target): Params => ({
  ...STEADY,
  model,
  max_tokens: 16,
  system: "You are kind.",
  messages: [{ role: "user", content: "Say hello." }],
});

const WEATHER: Anthropic.Tool = {
  name: "get_weather",
  description: "Get the current weather in a city",
  input_schema: {
    type: "object",
    properties: { city: { type: "string", description: "The name of the city", maxLength: 20 } },
    required: ["city"],
    additionalProperties: false,
  },
};

export async function bothWays(target: Target): Promise<void> {
  const client = clientOf(target);
  const whole = await client.messages.create(request(target));
  expect(whole).toMatchObject({ type: "message", role: "assistant", model: target.model, stop_sequence: null });
  expect(["end_turn", "max_tokens"]).toContain(whole.stop_reason!);
  expect(whole.usage.output_tokens).toBeGreaterThan(0);
  expect(whole._request_id).toMatch(/^req_/);
  const stream = client.messages.stream(request(target));
  let text = "";
  stream.on("text", (delta) => (text += delta));
  const streamed = await stream.finalMessage();
  expect<unknown>(streamed.content).toEqual(whole.content);
  expect(whole.content).toEqual([{ type: "text", text }] as never);
  const ended = ({ stop_reason, usage }: Anthropic.Message) => [stop_reason, promptTokens(usage), usage.output_tokens];
  expect(ended(streamed)).toEqual(ended(whole));
}

/** A stop sequence of the request ends the answer before it, and is reported. */
export async function stopSequence(target: Target): Promise<void> {
  const client = clientOf(target);
  const textOf = ({ content }: Anthropic.Message) =>
    content.map((block) => (block.type === "text" ? block.text : "")).join("");
  const text = textOf(await client.messages.create(request(target)));
  const stop = text.slice(2, 4); // a part of its first word
  const stopped = await client.messages.create({ ...request(target), stop_sequences: ["never said", stop] });
  expect([stopped.stop_reason, stopped.stop_sequence]).toEqual(["stop_sequence", stop]);
  expect(textOf(stopped)).toBe(text.slice(0, text.indexOf(stop)));
}

/** Tokens of the prompt, including cached ones. */
const promptTokens = ({ input_tokens, cache_read_input_tokens }: Anthropic.Usage): number =>
  input_tokens + (cache_read_input_tokens ?? 0);

/** The count equals the usage of the answer, and of a stream's first event. */
export async function countTokens(target: Target): Promise<void> {
  const client = clientOf(target);
  const { max_tokens, ...counted } = request(target);
  const { input_tokens } = await client.messages.countTokens(counted);
  expect(input_tokens).toBeGreaterThan(3);
  const { usage } = await client.messages.create({ ...counted, max_tokens });
  expect(promptTokens(usage)).toBe(input_tokens);
  const again = await client.messages.create({ ...counted, max_tokens });
  expect(again.usage.cache_read_input_tokens).toBeGreaterThan(0);
  expect(promptTokens(again.usage)).toBe(input_tokens);
  const stream = await client.messages.create({ ...counted, max_tokens, stream: true });
  let atStart: Anthropic.Usage | undefined;
  for await (const event of stream) {
    if (event.type === "message_start") atStart = event.message.usage;
    if (event.type !== "message_delta") continue;
    const { input_tokens, cache_read_input_tokens } = event.usage;
    expect(atStart).toMatchObject({ input_tokens, cache_read_input_tokens });
  }
  expect(promptTokens(atStart!)).toBe(input_tokens);
  const longer = await client.messages.countTokens({ ...counted, tools: [WEATHER] });
  expect(longer.input_tokens).toBeGreaterThan(input_tokens);
}

/** A required tool that does not exist is refused before the model is called. */
export async function unknownTool(target: Target): Promise<void> {
  const { max_tokens, ...counted } = request(target);
  const tool_choice = { type: "tool", name: "nobody" } as const;
  const asking = { ...counted, tools: [WEATHER], tool_choice };
  for (const refused of [
    clientOf(target).messages.countTokens(asking),
    clientOf(target).messages.create({ ...asking, max_tokens }),
  ]) {
    expect(await refused.catch((error: unknown) => error)).toBeInstanceOf(Anthropic.BadRequestError);
  }
}

/** A required call, in both modes, its result, and the answer to that. */
export async function toolLoop(target: Target): Promise<void> {
  const client = clientOf(target);
  const messages: Anthropic.MessageParam[] = [{ role: "user", content: "What is the weather in Paris?" }];
  const asking: Params = { ...STEADY, model: target.model, max_tokens: 200, messages, tools: [WEATHER] };
  const forced: Params = { ...asking, tool_choice: { type: "tool", name: "get_weather" } };
  const first = await client.messages.create(forced);
  const calls = first.content.filter((block) => block.type === "tool_use");
  expect([first.stop_reason, calls.length > 0]).toEqual(["tool_use", true]);
  for (const { name, input } of calls) {
    expect([name, input]).toEqual(["get_weather", { city: expect.any(String) }]);
  }
  const streamed = await client.messages.stream(forced).finalMessage();
  const unnamed = (message: Anthropic.Message) =>
    message.content.map((block) => (block.type === "tool_use" ? { ...block, id: "" } : block));
  expect(unnamed(streamed)).toEqual(unnamed(first));
  const results = calls.map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: "18 degrees" }) as const);
  const history = [...messages, { role: "assistant", content: first.content }, { role: "user", content: results }];
  const last = await client.messages.create({ ...asking, max_tokens: 16, messages: history as typeof messages });
  expect(promptTokens(last.usage)).toBeGreaterThan(promptTokens(first.usage));
}

/** The client's own loop, which runs the tool. */
export async function toolRunner(target: Target): Promise<void> {
  const cities: string[] = [];
  const tool = betaZodTool({
    name: "get_weather",
    description: "Get the current weather in a city",
    inputSchema: z.object({ city: z.string() }),
    run: ({ city }) => {
      cities.push(city);
      return "18 degrees and sunny";
    },
  });
  const messages = [{ role: "user" as const, content: "What is the weather in Paris?" }];
  const last = await clientOf(target).beta.messages.toolRunner({
    ...STEADY,
    model: target.model,
    max_tokens: 100,
    max_iterations: 3,
    messages,
    tools: [tool],
  });
  expect(cities[0]).toBe("Paris");
  expect(last.role).toBe("assistant");
  // the last answer covers all of it, although the runner sends messages one at a time
  const { input_tokens } = await clientOf(target).messages.countTokens({
    model: target.model,
    messages,
    tools: [WEATHER],
  });
  expect(promptTokens(last.usage)).toBeGreaterThan(input_tokens);
}

/** Values that fit a schema: as the answer, and as the arguments of a tool that must be called. */
export async function structuredOutput(target: Target): Promise<void> {
  const client = clientOf(target);
  const shape = z.object({ ok: z.boolean(), colour: z.enum(["red", "green"]) });
  const asking = { ...request(target), max_tokens: 100 };
  const parsed = await client.messages.parse({
    ...asking,
    output_config: { format: zodOutputFormat(shape) },
  });
  expect(shape.parse(parsed.parsed_output)).toEqual(parsed.parsed_output!);
  const input_schema = z.toJSONSchema(shape) as Anthropic.Tool.InputSchema; // an object's
  const tools = [{ name: "answer", input_schema }];
  const called = await client.messages.create({ ...asking, tools, tool_choice: { type: "any" } });
  const block = called.content.find((item) => item.type === "tool_use");
  expect(shape.safeParse(block?.input).error).toBeUndefined();
}

export async function models(target: Target): Promise<void> {
  const client = clientOf(target);
  const ids: string[] = [];
  for await (const model of client.models.list()) ids.push(model.id);
  expect(ids).toContain(target.model);
  expect(await client.models.retrieve(target.model)).toMatchObject({ type: "model", id: target.model });
  const missing = await client.models.retrieve("nope").catch((error: unknown) => error);
  expect(missing).toBeInstanceOf(Anthropic.NotFoundError);
}

/** `abort` closes the connection and stops the model; the server serves on. */
export async function abort(target: Target): Promise<void> {
  const output_config = { format: { type: "json_schema", schema: NEVER_ENDING } } as const;
  const stream = clientOf(target).messages.stream({ ...request(target), max_tokens: 100_000, output_config });
  stream.on("streamEvent", () => stream.abort());
  await expect(stream.finalMessage()).rejects.toBeInstanceOf(Anthropic.APIUserAbortError);
  await clientOf(target).messages.create({ ...request(target), max_tokens: 1 });
}

export async function clearErrors(target: Target): Promise<void> {
  const client = clientOf(target);
  const missing = await client.messages.create({ ...request(target), model: "nope" }).catch((error: unknown) => error);
  expect(missing).toBeInstanceOf(Anthropic.NotFoundError);
  const { requestID, message, type } = missing as InstanceType<typeof Anthropic.NotFoundError>;
  expect(requestID).toMatch(/^req_[0-9a-f]{24}$/);
  expect([type, message]).toEqual(["not_found_error", expect.stringContaining("model 'nope' not found")]);
  const streamed = client.messages.stream({ ...request(target), model: "nope" }).finalMessage();
  await expect(streamed).rejects.toBeInstanceOf(Anthropic.NotFoundError);
  const wrong = await client.messages.create({ ...request(target), max_tokens: 0 }).catch((error: unknown) => error);
  expect(wrong).toBeInstanceOf(Anthropic.BadRequestError);
}

/** All checks by name. */
export const CHECKS: Readonly<Record<string, (target: Target) => Promise<void>>> = {
  "messages, streaming and not": bothWays,
  "stop sequences": stopSequence,
  count_tokens: countTokens,
  "a tool call and its result": toolLoop,
  "a tool that is not there": unknownTool,
  "the tool runner": toolRunner,
  "structured output": structuredOutput,
  models,
  abort,
  "clear errors": clearErrors,
};
