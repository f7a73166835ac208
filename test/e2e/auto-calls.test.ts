/**
 * Calls that the embedded model makes by itself at temperature 1: each is of an offered tool, with arguments that fit
 * its schema, in every API, streamed and not.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { misfit } from "../engine/text/sampling/validator.ts";
import { testSeed } from "../seed.ts";
import { eventsOf } from "../server/sse-frames.ts";
import { ndjson, startHearth, type Hearth } from "./hearth.ts";

setDefaultTimeout(180_000);

const PARAMETERS = {
  type: "object",
  properties: {
    city: { type: "string", maxLength: 12 },
    unit: { type: "string", enum: ["c", "f", 'a "b"'] },
    days: { type: "integer", minimum: 1, maximum: 9 },
    near: {
      type: "array",
      maxItems: 2,
      items: { type: "object", properties: { km: { type: "number" } }, required: ["km"], additionalProperties: false },
    },
  },
  required: ["city", "unit", "near"],
  additionalProperties: false,
};
const TOOLS = { get_weather: PARAMETERS, now: { type: "object", properties: {}, additionalProperties: false } };
const question = "What is the weather in Oslo?";
const ANSWERS = 12;
const MOST = 160;

interface Call {
  readonly name: string;
  readonly arguments: unknown;
}
interface Answer {
  readonly calls: readonly Call[];
  readonly isCut: boolean;
}

let hearth: Hearth;
beforeAll(async () => void (hearth = await startHearth()));
afterAll(() => hearth.stop());

const named = Object.entries(TOOLS).map(([name, parameters]) => ({ name, description: name, parameters }));
const functions = named.map((each) => ({ type: "function", function: each }));
const messages = [{ role: "user", content: question }];
const model = "hearth";

async function ask(path: string, body: object): Promise<Record<string, any>> {
  const response = await hearth.post(path, body);
  expect(response.status).toBe(200);
  return (await response.json()) as Record<string, any>; // each test checks the fields that it reads
}

async function events(path: string, body: object): Promise<Record<string, any>[]> {
  const frames = await eventsOf(await hearth.post(path, { ...body, stream: true }));
  return frames.flatMap(({ data }) => (typeof data === "object" ? [data as Record<string, any>] : []));
}

const DIALECTS: Record<string, (seed: number) => Promise<Answer>> = {
  async native(seed) {
    const body = { model, messages, tools: functions, options: { temperature: 1, seed, num_predict: MOST } };
    const { message, done_reason } = await ask("/api/chat", { ...body, stream: false });
    const calls = (message.tool_calls ?? []).map(({ function: call }: { function: Call }) => call);
    return { calls, isCut: done_reason === "length" };
  },
  async "native, streamed"(seed) {
    const body = { model, messages, tools: functions, options: { temperature: 1, seed, num_predict: MOST } };
    const chunks = await Array.fromAsync(ndjson(await hearth.post("/api/chat", body)));
    const calls = chunks.flatMap(({ message }) => message.tool_calls ?? []).map((each) => each.function);
    return { calls, isCut: chunks.at(-1)!.done_reason === "length" };
  },
  async "chat completions"(seed) {
    const body = { model, messages, tools: functions, temperature: 1, seed, max_tokens: MOST };
    const { choices } = await ask("/v1/chat/completions", body);
    const calls = choices[0].message.tool_calls ?? [];
    return { calls: calls.map(callOf), isCut: choices[0].finish_reason === "length" };
  },
  async "chat completions, streamed"(seed) {
    const body = { model, messages, tools: functions, temperature: 1, seed, max_tokens: MOST };
    const choices = (await events("/v1/chat/completions", body)).map(({ choices: [choice] }) => choice);
    const parts = choices.flatMap((choice) => choice?.delta.tool_calls ?? []);
    const count = new Set(parts.map(({ index }) => index)).size;
    const calls = Array.from({ length: count }, (_, i) => {
      const own = parts.filter(({ index }) => index === i).map((part) => part.function);
      return { name: own[0].name, arguments: own.map((part) => part.arguments ?? "").join("") };
    });
    return {
      calls: calls.map((each) => callOf({ function: each })),
      isCut: choices.some((choice) => choice?.finish_reason === "length"),
    };
  },
  async messages(seed) {
    const tools = named.map(({ parameters, ...rest }) => ({ ...rest, input_schema: parameters }));
    const body = { model, messages, tools, temperature: 1, max_tokens: MOST, metadata: { user_id: String(seed) } };
    const { content, stop_reason } = await ask("/v1/messages", body);
    const uses = content.filter(({ type }: { type: string }) => type === "tool_use");
    return {
      calls: uses.map(({ name, input }: { name: string; input: unknown }) => ({ name, arguments: input })),
      isCut: stop_reason === "max_tokens",
    };
  },
  async responses() {
    const tools = named.map((each) => ({ type: "function", ...each }));
    const body = { model, input: question, tools, temperature: 1, max_output_tokens: MOST };
    const { output, status } = await ask("/v1/responses", body);
    const calls = output.filter(({ type }: { type: string }) => type === "function_call");
    return { calls: calls.map((call: Sent) => callOf({ function: call })), isCut: status === "incomplete" };
  },
};

interface Sent {
  readonly name: string;
  readonly arguments: string;
}

const callOf = ({ function: call }: { function: Sent }): Call => call;

test.each(Object.keys(DIALECTS))(
  "%s: every call names an offered tool, and its arguments fit the schema",
  async (dialect) => {
    let count = 0;
    for (let i = 0; i < ANSWERS; i++) {
      const { calls, isCut } = await DIALECTS[dialect]!((testSeed % 1_000_000) + i);
      if (isCut) continue;
      for (const call of calls) {
        count++;
        const schema = Object.entries(TOOLS).find(([name]) => name === call.name)?.[1];
        const args: unknown = typeof call.arguments === "string" ? JSON.parse(call.arguments) : call.arguments;
        const why = schema ? misfit(args, schema) : "not offered";
        expect(why && `${why}: ${JSON.stringify(call)}`).toBeUndefined();
      }
    }
    expect(count).toBeGreaterThan(2);
  },
);

test("with parallel_tool_calls: false, an answer has one call at most", async () => {
  const ask = "What is the weather in Oslo and in Paris? Call for both.";
  for (let seed = 1; seed < 8; seed++) {
    const body = { model, tools: functions, temperature: 1, seed, max_tokens: MOST, parallel_tool_calls: false };
    const response = await hearth.post("/v1/chat/completions", { ...body, messages: [{ role: "user", content: ask }] });
    const { choices } = (await response.json()) as Record<string, any>;
    expect(choices[0].message.tool_calls?.length ?? 1).toBe(1);
  }
});

test("with a format, the model calls a tool first and answers in the format behind its result", async () => {
  const schema = { type: "object", properties: { sky: { enum: ["blue", "grey"] } }, required: ["sky"] };
  const response_format = { type: "json_schema", json_schema: { name: "sky", schema, strict: true } };
  const body = { model, tools: functions, temperature: 0, max_tokens: MOST, response_format };
  const first = (await ask("/v1/chat/completions", { ...body, messages })).choices[0];
  expect(first).toMatchObject({ finish_reason: "tool_calls", message: { content: "" } });
  const chunks = (await events("/v1/chat/completions", { ...body, messages })).map(({ choices: [choice] }) => choice);
  expect(chunks.flatMap((choice) => choice?.delta.tool_calls ?? [])).toHaveLength(1);
  const result = { role: "tool", tool_call_id: first.message.tool_calls[0].id, content: "The sky is blue." };
  const second = await ask("/v1/chat/completions", { ...body, messages: [...messages, first.message, result] });
  expect(second.choices[0].finish_reason).toBe("stop");
  expect(misfit(JSON.parse(second.choices[0].message.content), schema)).toBeUndefined();
});
