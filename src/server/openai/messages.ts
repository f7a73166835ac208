/** Messages of the OpenAI API as our own. The parts of a message stay one message, and their texts are lines. */
import { t, type Static } from "elysia";
import { AppError } from "../../base/errors.ts";
import type { Message, ToolCall } from "../../runtime/runtime.ts";
import { joinParts, type ContentPart } from "../content-parts.ts";
import { customArguments } from "../custom-tools.ts";
import { decodeBase64 } from "../http/base64.ts";
import { parseFirstJson } from "../http/json.ts";

const FunctionBody = t.Object({ name: t.Optional(t.String()), arguments: t.Optional(t.String()) });

const CallBody = t.Object({
  id: t.Optional(t.String()),
  type: t.Optional(t.String()),
  function: t.Optional(FunctionBody),
  custom: t.Optional(t.Object({ name: t.Optional(t.String()), input: t.Optional(t.String()) })),
});

export const MessageBody = t.Object(
  {
    role: t.Optional(t.String()),
    /** A text, or parts. */
    content: t.Optional(t.Unknown()),
    /** Who speaks; of a `tool` message: the function. */
    name: t.Optional(t.String()),
    reasoning: t.Optional(t.String()),
    /** What other servers call `reasoning`. */
    reasoning_content: t.Optional(t.String()),
    /** What an answer without content says instead. */
    refusal: t.Optional(t.String()),
    tool_calls: t.Optional(t.Array(CallBody)),
    /** What `tool_calls` were before there could be several. */
    function_call: t.Optional(FunctionBody),
    tool_call_id: t.Optional(t.String()),
  },
  { goType: "openai.Message" },
);
type MessageBody = Static<typeof MessageBody>;

/** Throws `bad_request`. */
export function toMessages(bodies: readonly MessageBody[] = []): Message[] {
  if (bodies.length === 0) throw new AppError("bad_request", "[] is too short - 'messages'");
  const names = new Map<string, string>(); // of functions, by the ids of the calls so far
  return bodies.map((body, i) => {
    const place = `messages[${i}]`;
    const calls = callsOf(body).map((call) => toCall(call, place));
    for (const call of calls) if (call.id) names.set(call.id, call.function.name);
    const thinking = body.reasoning ?? body.reasoning_content;
    return {
      role: roleOf(body),
      ...contentOf(body, place),
      ...(thinking ? { thinking } : {}),
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
      ...toolFields(body, names),
    };
  });
}

const callsOf = ({ tool_calls = [], function_call }: MessageBody): readonly Static<typeof CallBody>[] =>
  function_call ? [...tool_calls, { function: function_call }] : tool_calls;

/** `developer` is what newer models call `system`, and `function` what older ones call `tool`. */
function roleOf({ role = "" }: MessageBody): string {
  const name = role.toLowerCase();
  if (name === "developer") return "system";
  return name === "function" ? "tool" : name;
}

/** The function of a result, from its own name or from the call that it answers. */
function toolFields(body: MessageBody, names: ReadonlyMap<string, string>): Partial<Message> {
  if (roleOf(body) !== "tool") return {};
  const { tool_call_id: id } = body;
  const name = body.name || (id && names.get(id));
  return { ...(name ? { tool_name: name } : {}), ...(id ? { tool_call_id: id } : {}) };
}

function toCall({ id, function: body = {}, custom }: Static<typeof CallBody>, place: string): ToolCall {
  const { name = "", arguments: text = "" } = body;
  const called = custom
    ? { name: custom.name ?? "", arguments: customArguments(custom.input ?? "") }
    : { name, arguments: parseArguments(text, place) };
  return { function: called, ...(id ? { id } : {}) };
}

/** No text is no arguments. */
function parseArguments(text: string, place: string): Record<string, unknown> {
  const value = text.trim() === "" ? {} : tryParse(text);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new AppError("bad_request", `invalid tool call arguments: ${place}: expected a JSON object as text`);
}

function tryParse(text: string): unknown {
  try {
    return parseFirstJson(text);
  } catch {
    return undefined; // the caller says what it expected
  }
}

function contentOf(body: MessageBody, place: string): ReturnType<typeof joinParts> {
  const { content, refusal, reasoning, reasoning_content } = body;
  if (typeof content === "string") return { content: content.toWellFormed() };
  if (Array.isArray(content))
    return joinParts(
      content.map((part, i) => readPart(part, `${place}.content[${i}]`)),
      "\n",
    );
  const isSaid = callsOf(body).length > 0 || refusal || reasoning || reasoning_content;
  if (content === undefined && isSaid) return { content: (refusal ?? "").toWellFormed() };
  const found = content === undefined ? "null" : typeof content;
  throw new AppError("bad_request", `invalid message content type: ${place}: expected text or parts, got ${found}`);
}

function readPart(part: unknown, place: string): ContentPart {
  if (typeof part === "string") return part.toWellFormed();
  const fields = isObject(part) ? part : {};
  switch (fields["type"]) {
    case "text":
      return textOf(fields["text"], place);
    case "refusal":
      return textOf(fields["refusal"], place);
    case "image_url":
      return readImage(fields["image_url"], place);
    case "input_audio":
      throw new AppError("bad_request", `${place}: audio input is not supported`);
    default:
      throw new AppError("bad_request", `invalid message format: ${place}: expected a part of type text or image_url`);
  }
}

function textOf(value: unknown, place: string): string {
  if (typeof value === "string") return value.toWellFormed();
  throw new AppError("bad_request", `invalid message format: ${place}: expected a text`);
}

/** A data URI, bare or under `url`. */
export function readImage(value: unknown, place: string): Uint8Array {
  const url = isObject(value) ? value["url"] : value;
  if (typeof url === "string" && /^https?:/i.test(url)) {
    throw new AppError("bad_request", "image URLs are not currently supported, please use base64 encoded data instead");
  }
  const head = typeof url === "string" ? /^data:(image\/(jpeg|jpg|png|webp|gif))?;base64,/.exec(url)?.[0] : undefined;
  if (typeof url === "string" && head !== undefined) return decodeBase64(url.slice(head.length));
  const expected = "expected data:image/TYPE;base64, with a TYPE of jpeg, jpg, png, webp or gif";
  throw new AppError("bad_request", `invalid image input: ${place}: ${expected}`);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
