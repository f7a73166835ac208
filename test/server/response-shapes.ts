/**
 * The documented shapes of a Responses stream, strictly: every event type, every item, the response object, and the
 * order of events. https://platform.openai.com/docs/api-reference/responses-streaming
 */
import { expect } from "bun:test";
import { Type, type TProperties } from "@sinclair/typebox";
import { nullable, oneOfTexts, reader, strictObject, type Output } from "../../src/base/schema.ts";
import type { ReceivedFrame } from "./sse-frames.ts";

const text = Type.String();
const some = Type.String({ minLength: 1 });
const whole = Type.Integer();
const nothing = Type.Null();
const literal = Type.Literal;
const id = (prefix: string) => Type.String({ pattern: `^${prefix}_` });

const Status = oneOfTexts(["in_progress", "completed", "incomplete"]);
const Index = Type.Integer({ minimum: 0 });
const token = { token: text, bytes: Type.Array(whole), logprob: Type.Number() };
const Token = strictObject(token);
const Logprobs = Type.Array(strictObject({ ...token, top_logprobs: Type.Array(Token) }));
const OutputText = strictObject({
  type: literal("output_text"),
  text,
  annotations: Type.Array(Type.Never()),
  logprobs: Logprobs,
});
const SummaryText = strictObject({ type: literal("summary_text"), text });

const Item = Type.Union([
  strictObject({
    type: literal("message"),
    id: id("msg"),
    status: Status,
    role: literal("assistant"),
    content: Type.Array(OutputText),
  }),
  strictObject({
    type: literal("function_call"),
    id: id("fc"),
    status: Status,
    call_id: some,
    name: some,
    namespace: Type.Optional(text),
    arguments: text,
  }),
  strictObject({
    type: literal("custom_tool_call"),
    id: id("ctc"),
    status: Status,
    call_id: some,
    name: some,
    namespace: Type.Optional(text),
    input: text,
  }),
  strictObject({
    type: literal("reasoning"),
    id: id("rs"),
    status: Status,
    summary: Type.Array(SummaryText),
    encrypted_content: nullable(text),
  }),
  strictObject({
    type: literal("mcp_call"),
    id: id("mcp"),
    status: oneOfTexts(["in_progress", "completed", "incomplete", "failed"]),
    server_label: some,
    name: some,
    arguments: text,
    output: nullable(text),
    error: nullable(text),
    approval_request_id: nothing,
  }),
  strictObject({
    type: literal("mcp_list_tools"),
    id: id("mcpl"),
    server_label: some,
    tools: Type.Array(
      strictObject({ name: some, description: text, input_schema: Type.Object({}), annotations: nothing }),
    ),
    error: nothing,
  }),
]);

const Usage = strictObject({
  input_tokens: Index,
  input_tokens_details: strictObject({ cached_tokens: Index, cache_write_tokens: Index }),
  output_tokens: Index,
  output_tokens_details: strictObject({ reasoning_tokens: Index }),
  total_tokens: Index,
});

const response = strictObject({
  id: id("resp"),
  object: literal("response"),
  created_at: whole,
  completed_at: nullable(whole),
  status: oneOfTexts(["in_progress", "completed", "incomplete", "failed"]),
  error: nullable(strictObject({ code: text, message: text })),
  incomplete_details: nullable(strictObject({ reason: literal("max_output_tokens") })),
  model: text,
  output: Type.Array(Item),
  instructions: nullable(text),
  previous_response_id: nullable(text),
  tools: Type.Array(Type.Object({ type: text })),
  tool_choice: Type.Union([oneOfTexts(["auto", "none", "required"]), Type.Object({ type: text })]),
  parallel_tool_calls: Type.Boolean(),
  max_tool_calls: nothing,
  text: Type.Object({ format: Type.Object({ type: oneOfTexts(["text", "json_object", "json_schema"]) }) }),
  reasoning: strictObject({ effort: nullable(text), summary: nullable(text) }),
  temperature: Type.Number(),
  top_p: Type.Number(),
  presence_penalty: Type.Number(),
  frequency_penalty: Type.Number(),
  top_logprobs: Index,
  max_output_tokens: nullable(whole),
  truncation: oneOfTexts(["auto", "disabled"]),
  usage: nullable(Usage),
  metadata: Type.Record(Type.String(), Type.String()),
  user: nullable(text),
  safety_identifier: nullable(text),
  prompt_cache_key: nullable(text),
  service_tier: literal("default"),
  store: Type.Boolean(),
  background: literal(false),
});
export const ResponseShape = reader(response);

const event = (type: string, fields: TProperties) => ({
  type,
  shape: reader(strictObject({ type: literal(type), sequence_number: Index, ...fields })),
});
const ofItem = { item_id: text, output_index: Index };
const ofText = { ...ofItem, content_index: Index };
const ofSummary = { ...ofItem, summary_index: Index };

const EVENTS = Object.fromEntries(
  [
    event("response.created", { response }),
    event("response.in_progress", { response }),
    event("response.completed", { response }),
    event("response.incomplete", { response }),
    event("response.failed", { response }),
    event("response.output_item.added", { output_index: Index, item: Item }),
    event("response.output_item.done", { output_index: Index, item: Item }),
    event("response.content_part.added", { ...ofText, part: OutputText }),
    event("response.content_part.done", { ...ofText, part: OutputText }),
    event("response.output_text.delta", { ...ofText, delta: some, logprobs: Logprobs }),
    event("response.output_text.done", { ...ofText, text: text, logprobs: Logprobs }),
    event("response.function_call_arguments.delta", { ...ofItem, delta: text }),
    event("response.function_call_arguments.done", { ...ofItem, name: text, arguments: text }),
    event("response.custom_tool_call_input.delta", { ...ofItem, delta: text }),
    event("response.custom_tool_call_input.done", { ...ofItem, input: text }),
    event("response.mcp_list_tools.in_progress", ofItem),
    event("response.mcp_list_tools.completed", ofItem),
    event("response.mcp_call.in_progress", ofItem),
    event("response.mcp_call.completed", ofItem),
    event("response.mcp_call.failed", ofItem),
    event("response.mcp_call_arguments.delta", { ...ofItem, delta: text }),
    event("response.mcp_call_arguments.done", { ...ofItem, arguments: text }),
    event("response.reasoning_summary_part.added", { ...ofSummary, part: SummaryText }),
    event("response.reasoning_summary_part.done", { ...ofSummary, part: SummaryText }),
    event("response.reasoning_summary_text.delta", { ...ofSummary, delta: some }),
    event("response.reasoning_summary_text.done", { ...ofSummary, text: text }),
  ].map(({ type, shape }) => [type, shape]),
);

const END = /^response\.(completed|incomplete|failed)$/;

/** Checks each frame and their sequence; returns the response of the last one. */
export function checkStream(frames: readonly ReceivedFrame[]): Output<typeof response> {
  const items: Output<typeof Item>[] = [];
  let open: number | undefined;
  frames.forEach(({ event: name, data }, i) => {
    const schema = EVENTS[data.type];
    if (!schema) throw new Error(`no such event: ${data.type}`);
    schema.parse(data);
    expect([name, data.sequence_number]).toEqual([data.type, i]);
    if (END.test(data.type)) expect(i).toBe(frames.length - 1);
    if (data.type === "response.output_item.added") {
      expect([data.type, open, data.output_index, data.item.status]).toEqual([
        data.type,
        undefined,
        items.length,
        data.item.type === "mcp_list_tools" ? undefined : "in_progress", // its status is in its events alone
      ]);
      open = items.push(data.item) - 1;
    } else if ("output_index" in data) {
      expect([data.type, data.output_index, data.item_id ?? data.item.id]).toEqual([data.type, open, items[open!]?.id]);
    }
    if (data.type === "response.output_item.done") {
      items[open!] = data.item;
      open = undefined;
    }
  });
  expect(frames.slice(0, 2).map(({ event: name }) => name)).toEqual(["response.created", "response.in_progress"]);
  const last = frames.at(-1)!.data;
  expect(last.type).toMatch(END);
  expect(last.type).toBe(`response.${last.response.status}`);
  if (last.type !== "response.failed") {
    expect(open).toBeUndefined();
    expect(last.response.output).toEqual(items);
  }
  return last.response;
}
