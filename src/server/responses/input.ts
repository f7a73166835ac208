/**
 * The input of a Responses request as messages of ours. What stands between two turns of the user belongs to one turn
 * of the assistant: its reasoning, its words and its calls become one message.
 * Items: https://platform.openai.com/docs/api-reference/responses/create
 */
import { AppError } from "../../base/errors.ts";
import type { Message, ToolCall } from "../../runtime/runtime.ts";
import { optional, readFields, readList, readText, unexpected, type Fields, type Read } from "../fields.ts";
import { customArguments } from "../custom-tools.ts";
import { joinParts, type ContentPart } from "../content-parts.ts";
import { readImage } from "../openai/messages.ts";
import { joinedName } from "./tools.ts";

/** What was said under an id; undefined where that is not known any more. */
export type FindItem = (id: string) => Fields | undefined;

/** Throws `bad_request`. */
export function readInput(
  { input, instructions }: { input?: unknown; instructions?: string },
  find: FindItem = () => undefined,
): Message[] {
  if (input === undefined) throw new AppError("bad_request", "input is required");
  const conversation = new Conversation(find);
  if (typeof input === "string") conversation.say({ role: "user", content: input.toWellFormed() });
  else readList((item, path) => conversation.add(readFields(item, path), path))(input, "input");
  const messages = conversation.finish();
  if (messages.length === 0)
    throw new AppError("bad_request", "input: expected a text or at least one message, got none");
  return [...(instructions ? [{ role: "system", content: instructions }] : []), ...messages];
}

interface Turn {
  said: ReturnType<typeof joinParts>;
  thinking: string;
  readonly calls: ToolCall[];
}

class Conversation {
  readonly #find: FindItem;
  readonly #messages: Message[] = [];
  readonly #callNames = new Map<string, string>(); // tool by the id of its call
  #thinking = "";
  /** The turn of the assistant that the next item may still belong to. */
  #turn: Turn | undefined;

  constructor(find: FindItem) {
    this.#find = find;
  }

  add(item: Fields, path: string): void {
    const type =
      optional(readText)(item["type"], `${path}.type`) ?? (item["role"] === undefined ? undefined : "message");
    switch (type) {
      case "message":
        return this.#addMessage(item, path);
      case "function_call":
        return this.#addCall(item, path, readArguments(item["arguments"], `${path}.arguments`));
      case "custom_tool_call":
        return this.#addCall(item, path, customArguments(readText(item["input"], `${path}.input`)));
      case "function_call_output":
      case "custom_tool_call_output":
        return this.#addResult(item, path);
      case "reasoning":
        this.#endTurn();
        this.#thinking += readReasoning(item, path);
        return;
      case "item_reference":
        return this.add(this.#said(item, path), path);
      case "web_search_call":
        return; // says that there was a search, not what it found
      case undefined:
        throw new AppError("bad_request", `${path}: input item missing required 'type' field`);
      default:
        throw new AppError("bad_request", `${path}: unknown input item type: ${JSON.stringify(type.slice(0, 80))}`);
    }
  }

  /** The assistant's words join its turn; anyone else ends it. */
  say({ role, ...said }: Message): void {
    if (role !== "assistant") {
      this.finish();
      this.#messages.push({ role, ...said });
      return;
    }
    const turn = this.#turn;
    if (turn && (turn.calls.length > 0 || turn.said.content !== "" || turn.said.images)) this.#endTurn();
    this.#assistant().said = said;
  }

  finish(): Message[] {
    if (this.#thinking !== "") this.#assistant();
    this.#endTurn();
    return this.#messages;
  }

  #said(reference: Fields, path: string): Fields {
    const id = readText(reference["id"], `${path}.id`);
    const item = this.#find(id);
    if (item) return item;
    const text = `${path}: nothing is stored here, and ${JSON.stringify(id.slice(0, 80))} is not among what was said lately`;
    throw new AppError("bad_request", `${text}; expected the item itself (clients send it with store: false)`);
  }

  #addMessage(item: Fields, path: string): void {
    const role = readText(item["role"], `${path}.role`);
    const said = readContent(item["content"], `${path}.content`);
    const ours = role === "developer" ? "system" : role;
    if (!["system", "user", "assistant"].includes(ours)) {
      throw unexpected(`${path}.role`, '"user", "assistant", "system" or "developer"', role);
    }
    this.say({ role: ours, ...said });
  }

  #addCall(item: Fields, path: string, args: Record<string, unknown>): void {
    const id = readText(item["call_id"], `${path}.call_id`);
    const namespace = optional(readText)(item["namespace"], `${path}.namespace`);
    const name = joinedName(namespace, readText(item["name"], `${path}.name`));
    this.#callNames.set(id, name);
    this.#assistant().calls.push({ id, function: { name, arguments: args } });
  }

  #addResult(item: Fields, path: string): void {
    const id = readText(item["call_id"], `${path}.call_id`);
    const result = readContent(item["output"], `${path}.output`);
    const name = this.#callNames.get(id);
    this.finish();
    this.#messages.push({
      role: "tool",
      ...result,
      tool_call_id: id,
      ...(name === undefined ? {} : { tool_name: name }),
    });
  }

  #assistant(): Turn {
    this.#turn ??= { said: { content: "" }, thinking: "", calls: [] };
    this.#turn.thinking += this.#thinking;
    this.#thinking = "";
    return this.#turn;
  }

  #endTurn(): void {
    if (!this.#turn) return;
    const { said, thinking, calls } = this.#turn;
    this.#turn = undefined;
    this.#messages.push({
      role: "assistant",
      ...said,
      ...(thinking ? { thinking } : {}),
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    });
  }
}

/** A text, or parts, whose texts become lines. */
function readContent(value: unknown, path: string): ReturnType<typeof joinParts> {
  return typeof value === "string"
    ? { content: value.toWellFormed() }
    : joinParts(readList(readPart)(value, path), "\n");
}

const readPart: Read<ContentPart> = (value, path) => {
  const part = readFields(value, path);
  switch (part["type"]) {
    case "input_text":
    case "output_text":
    case "text":
      return readText(part["text"], `${path}.text`);
    case "refusal":
      return readText(part["refusal"], `${path}.refusal`);
    case "input_image":
      return readImage(part["image_url"], path);
    case "input_file":
      throw new AppError("bad_request", `${path}: file inputs are not currently supported`);
    default:
      throw unexpected(`${path}.type`, '"input_text", "output_text" or "input_image"', part["type"]);
  }
};

/** What the model thought: as we sent it, or as others did. */
function readReasoning(item: Fields, path: string): string {
  const texts = (key: string): string =>
    (
      optional(readList((part, at) => readText(readFields(part, at)["text"], `${at}.text`)))(
        item[key],
        `${path}.${key}`,
      ) ?? []
    ).join("\n");
  return texts("content") || texts("summary") || (optional(readText)(item["encrypted_content"], path) ?? "");
}

/** A JSON object as text; no text is no arguments. */
function readArguments(value: unknown, path: string): Record<string, unknown> {
  const text = optional(readText)(value, path) ?? "";
  if (text.trim() === "") return {};
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw unexpected(path, "a JSON object as text", text);
  }
  return { ...readFields(parsed, path) };
}
