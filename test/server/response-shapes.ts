/**
 * The documented shapes of a Responses stream, strictly: every event by its type, every item, the response object, and
 * the order in which events may come. https://platform.openai.com/docs/api-reference/responses-streaming
 */
import { expect } from "bun:test";
import { z } from "zod";
import type { ReceivedFrame } from "./sse-frames.ts";

const Status = z.enum(["in_progress", "completed", "incomplete"]);
const Index = z.int().nonnegative();
const Token = z.strictObject({ token: z.string(), bytes: z.array(z.int()), logprob: z.number() });
const Logprobs = z.array(Token.extend({ top_logprobs: z.array(Token) }));
const OutputText = z.strictObject({
  type: z.literal("output_text"),
  text: z.string(),
  annotations: z.array(z.never()),
  logprobs: Logprobs,
});
const SummaryText = z.strictObject({ type: z.literal("summary_text"), text: z.string() });

const Item = z.discriminatedUnion("type", [
  z.strictObject({
    type: z.literal("message"),
    id: z.string().regex(/^msg_/),
    status: Status,
    role: z.literal("assistant"),
    content: z.array(OutputText),
  }),
  z.strictObject({
    type: z.literal("function_call"),
    id: z.string().regex(/^fc_/),
    status: Status,
    call_id: z.string().min(1),
    name: z.string().min(1),
    namespace: z.string().optional(),
    arguments: z.string(),
  }),
  z.strictObject({
    type: z.literal("reasoning"),
    id: z.string().regex(/^rs_/),
    status: Status,
    summary: z.array(SummaryText),
    encrypted_content: z.string().nullable(),
  }),
]);

const Usage = z.strictObject({
  input_tokens: Index,
  input_tokens_details: z.strictObject({ cached_tokens: Index, cache_write_tokens: Index }),
  output_tokens: Index,
  output_tokens_details: z.strictObject({ reasoning_tokens: Index }),
  total_tokens: Index,
});

export const ResponseShape = z.strictObject({
  id: z.string().regex(/^resp_/),
  object: z.literal("response"),
  created_at: z.int(),
  completed_at: z.int().nullable(),
  status: z.enum(["in_progress", "completed", "incomplete", "failed"]),
  error: z.strictObject({ code: z.string(), message: z.string() }).nullable(),
  incomplete_details: z.strictObject({ reason: z.literal("max_output_tokens") }).nullable(),
  model: z.string(),
  output: z.array(Item),
  instructions: z.string().nullable(),
  previous_response_id: z.null(),
  tools: z.array(z.looseObject({ type: z.string() })),
  tool_choice: z.union([z.enum(["auto", "none", "required"]), z.looseObject({ type: z.string() })]),
  parallel_tool_calls: z.boolean(),
  max_tool_calls: z.null(),
  text: z.looseObject({ format: z.looseObject({ type: z.enum(["text", "json_object", "json_schema"]) }) }),
  reasoning: z.strictObject({ effort: z.string().nullable(), summary: z.string().nullable() }),
  temperature: z.number(),
  top_p: z.number(),
  presence_penalty: z.number(),
  frequency_penalty: z.number(),
  top_logprobs: Index,
  max_output_tokens: z.int().nullable(),
  truncation: z.enum(["auto", "disabled"]),
  usage: Usage.nullable(),
  metadata: z.record(z.string(), z.string()),
  user: z.string().nullable(),
  safety_identifier: z.string().nullable(),
  prompt_cache_key: z.string().nullable(),
  service_tier: z.literal("default"),
  store: z.literal(false),
  background: z.literal(false),
});

const event = (type: string, fields: z.ZodRawShape): z.ZodObject =>
  z.strictObject({ type: z.literal(type), sequence_number: Index, ...fields });
const ofItem = { item_id: z.string(), output_index: Index };
const ofText = { ...ofItem, content_index: Index };
const ofSummary = { ...ofItem, summary_index: Index };

const EVENTS = Object.fromEntries(
  [
    event("response.created", { response: ResponseShape }),
    event("response.in_progress", { response: ResponseShape }),
    event("response.completed", { response: ResponseShape }),
    event("response.incomplete", { response: ResponseShape }),
    event("response.failed", { response: ResponseShape }),
    event("response.output_item.added", { output_index: Index, item: Item }),
    event("response.output_item.done", { output_index: Index, item: Item }),
    event("response.content_part.added", { ...ofText, part: OutputText }),
    event("response.content_part.done", { ...ofText, part: OutputText }),
    event("response.output_text.delta", { ...ofText, delta: z.string().min(1), logprobs: Logprobs }),
    event("response.output_text.done", { ...ofText, text: z.string(), logprobs: Logprobs }),
    event("response.function_call_arguments.delta", { ...ofItem, delta: z.string() }),
    event("response.function_call_arguments.done", { ...ofItem, name: z.string(), arguments: z.string() }),
    event("response.reasoning_summary_part.added", { ...ofSummary, part: SummaryText }),
    event("response.reasoning_summary_part.done", { ...ofSummary, part: SummaryText }),
    event("response.reasoning_summary_text.delta", { ...ofSummary, delta: z.string().min(1) }),
    event("response.reasoning_summary_text.done", { ...ofSummary, text: z.string() }),
  ].map((schema) => [(schema.shape["type"] as z.ZodLiteral<string>).value, schema]),
);

const END = /^response\.(completed|incomplete|failed)$/;

/** Checks every frame by itself and all together; returns the response that the last one brings. */
export function checkStream(frames: readonly ReceivedFrame[]): z.infer<typeof ResponseShape> {
  const items: z.infer<typeof Item>[] = [];
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
        "in_progress",
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
