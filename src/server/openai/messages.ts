/**
 * Converts messages of the OpenAI API to ours. The parts of a message stay one message, and their texts become lines.
 */
import { t, type Static } from "elysia";
import { AppError, isObject, type Fields } from "../../base/index.ts";
import { audioFormat } from "../../engine/index.ts";
import type { Message, ToolCall } from "../../runtime/portable.ts";
import { joinParts } from "../answers/content-parts.ts";
import { customArguments } from "../answers/custom-tools.ts";
import { decodeBase64 } from "../http/base64.ts";
import { PartReader, readArguments, type LeftOut } from "../requests/history.ts";

const FunctionBody = t.Object({
  name: t.Optional(t.String()),
  /** JSON as text; some clients send the object itself. */
  arguments: t.Optional(t.Unknown()),
});

const CallBody = t.Object({
  id: t.Optional(t.String()),
  type: t.Optional(t.String()),
  function: t.Optional(FunctionBody),
  custom: t.Optional(t.Object({ name: t.Optional(t.String()), input: t.Optional(t.String()) })),
});

export const MessageBody = t.Object({
  role: t.Optional(t.String()),
  /** A text, or parts. */
  content: t.Optional(t.Unknown()),
  /** The speaker's name; in a `tool` message: the function. */
  name: t.Optional(t.String()),
  reasoning: t.Optional(t.String()),
  /** Other servers' name of `reasoning`. */
  reasoning_content: t.Optional(t.String()),
  /** Replaces the content of a refused answer. */
  refusal: t.Optional(t.String()),
  tool_calls: t.Optional(t.Array(CallBody)),
  /** The predecessor of `tool_calls`, with a single call. */
  function_call: t.Optional(FunctionBody),
  tool_call_id: t.Optional(t.String()),
});
type MessageBody = Static<typeof MessageBody>;

/**
 * Throws `bad_request`.
 * @param left collects dropped content
 */
export function toMessages(bodies: readonly MessageBody[] = [], left: LeftOut = []): Message[] {
  if (bodies.length === 0) throw new AppError("bad_request", "[] is too short - 'messages'");
  const names = new Map<string, string>(); // function names by call id
  const answers = bodies.findLastIndex((body) => roleOf(body) === "assistant");
  return bodies.map((body, i) => {
    const calls = callsOf(body).map((call) => toCall(call, left));
    for (const call of calls) if (call.id) names.set(call.id, call.function.name);
    const thinking = body.reasoning ?? body.reasoning_content;
    return {
      role: roleOf(body),
      ...contentOf(body, { place: `messages[${i}]`, isNew: roleOf(body) === "user" && i > answers, left }),
      ...(thinking ? { thinking } : {}),
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
      ...toolFields(body, names),
    };
  });
}

const callsOf = ({ tool_calls = [], function_call }: MessageBody): readonly Static<typeof CallBody>[] =>
  function_call ? [...tool_calls, { function: function_call }] : tool_calls;

/** Newer models call `system` `developer`, and older ones call `tool` `function`. */
function roleOf({ role = "" }: MessageBody): string {
  const name = role.toLowerCase();
  if (name === "developer") return "system";
  return name === "function" ? "tool" : name;
}

/** The function that a result belongs to, from its own name or from its call. */
function toolFields(body: MessageBody, names: ReadonlyMap<string, string>): Partial<Message> {
  if (roleOf(body) !== "tool") return {};
  const { tool_call_id: id } = body;
  const name = body.name || (id && names.get(id));
  return { ...(name ? { tool_name: name } : {}), ...(id ? { tool_call_id: id } : {}) };
}

function toCall({ id, function: body = {}, custom }: Static<typeof CallBody>, left: LeftOut): ToolCall {
  const { name = "" } = body;
  const called = custom
    ? { name: custom.name ?? "", arguments: customArguments(custom.input ?? "") }
    : { name, arguments: readArguments(body.arguments, left) };
  return { function: called, ...(id ? { id } : {}) };
}

interface Place {
  readonly place: string;
  /** True if it is a new message of the user. */
  readonly isNew: boolean;
  readonly left: LeftOut;
}

function contentOf(body: MessageBody, { place, isNew, left }: Place): ReturnType<typeof joinParts> {
  const { content, refusal } = body;
  if (typeof content === "string") return { content: content.toWellFormed() };
  if (Array.isArray(content)) {
    const reader = new PartReader({ readers: READERS, unknown, isNew, isAnswer: roleOf(body) === "assistant", left });
    const parts = content.flatMap((part, i) => reader.read(part, `${place}.content[${i}]`));
    reader.finish();
    return joinParts(parts, "\n");
  }
  if (content === undefined && !isNew) return { content: (refusal ?? "").toWellFormed() };
  const found = content === undefined ? "null" : typeof content;
  throw new AppError("bad_request", `invalid message content type: ${place}: expected text or parts, got ${found}`);
}

const READERS = {
  text: (part: Fields, place: string) => [textOf(part["text"], place)],
  refusal: (part: Fields, place: string) => [textOf(part["refusal"], place)],
  image_url: (part: Fields, place: string) => [readImage(part["image_url"], place)],
  input_audio: (part: Fields, place: string) => [readAudio(part["input_audio"], `${place}.input_audio`)],
  file: (_: Fields, place: string) => {
    throw new AppError("bad_request", `${place}: file inputs are not currently supported`);
  },
  thinking: () => [], // another model's thinking
  reasoning: () => [],
};

const unknown = (_: unknown, place: string): AppError =>
  new AppError(
    "bad_request",
    `invalid message format: ${place}: expected a part of type text, image_url or input_audio`,
  );

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
  if (typeof url === "string" && head !== undefined) return decodeBase64(url.slice(head.length), place);
  const expected = "expected data:image/TYPE;base64, with a TYPE of jpeg, jpg, png, webp or gif";
  throw new AppError("bad_request", `invalid image input: ${place}: ${expected}`);
}

/** Base64 of a file, and its format, which its first bytes show, too. Throws `bad_request` for another format. */
export function readAudio(value: unknown, place: string): Uint8Array {
  const data = isObject(value) ? value["data"] : undefined;
  if (typeof data !== "string") {
    const got = data === undefined ? "none" : typeof data;
    throw new AppError("bad_request", `${place}.data: expected base64 of an audio file, got ${got}`);
  }
  const head = /^data:(?:audio|video)\/[^/]{1,100}?;base64,/.exec(data)?.[0] ?? ""; // browsers add ;codecs=vp8,opus
  const bytes = decodeBase64(data.slice(head.length), `${place}.data`);
  audioFormat(bytes, `${place}.data`);
  return bytes;
}
