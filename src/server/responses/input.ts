/**
 * Converts the input of a Responses request to our messages. All items between two turns of the user belong to one turn
 * of the assistant: its reasoning, text and calls become one message. Items:
 * https://platform.openai.com/docs/api-reference/responses/create
 */
import {
  AppError,
  isObject,
  optional,
  readFields,
  readList,
  readText,
  unexpected,
  type Fields,
} from "../../base/index.ts";
import type { Message, ToolCall } from "../../runtime/portable.ts";
import { PartReader, readArguments, toolResultText, type LeftOut } from "../requests/history.ts";
import { customArguments } from "../answers/custom-tools.ts";
import { joinParts } from "../answers/content-parts.ts";
import { readAudio, readImage } from "../openai/messages.ts";
import { foreignCall, isAnswer, isForeignOutput } from "./foreign-items.ts";
import { joinedName } from "./tools.ts";

/** The output item with an id; undefined if it is no longer kept. */
export type FindItem = (id: string) => Fields | undefined;

interface InputAids {
  readonly find?: FindItem;
  /** Collects dropped content. */
  readonly left?: LeftOut;
  /** Items of the conversation before the input. */
  readonly history?: readonly Fields[];
}

/** Throws `bad_request`. */
export function readInput(
  { input, instructions }: { input?: unknown; instructions?: string },
  { find = () => undefined, left = [], history = [] }: InputAids = {},
): Message[] {
  if (input === undefined && history.length === 0) throw new AppError("bad_request", "input is required");
  const conversation = new Conversation(find, left);
  conversation.addHistory(history);
  if (typeof input === "string") conversation.say({ role: "user", content: input.toWellFormed() });
  else if (input !== undefined) conversation.addAll(readList(readFields)(input, "input"));
  const messages = conversation.finish();
  if (messages.length === 0)
    throw new AppError("bad_request", "input: expected a text or at least one message, got none");
  return [...(instructions ? [{ role: "system", content: instructions }] : []), ...messages];
}

/** The position of an item. */
interface Place {
  readonly path: string;
  /** True if no item of the assistant follows. */
  readonly isNew: boolean;
}

interface Turn {
  said: ReturnType<typeof joinParts>;
  thinking: string;
  readonly calls: ToolCall[];
}

class Conversation {
  readonly #find: FindItem;
  readonly #left: LeftOut;
  readonly #messages: Message[] = [];
  readonly #callNames = new Map<string, string>(); // tool name by call id
  #thinking = "";
  /** The turn of the assistant that the next item may still belong to. */
  #turn: Turn | undefined;

  constructor(find: FindItem, left: LeftOut) {
    this.#find = find;
    this.#left = left;
  }

  /** Adds items that were accepted before. */
  addHistory(items: readonly Fields[]): void {
    for (const [i, item] of items.entries()) this.#add(item, { path: `previous_response_id.${i}`, isNew: false });
  }

  /** Throws `bad_request` also if the last item is unknown and there is nothing else to answer. */
  addAll(items: readonly Fields[]): void {
    const answers = items.findLastIndex((item) => item["role"] === "assistant" || isAnswer(String(item["type"])));
    const pathOf = (i: number): string => `input.${i}`;
    let leftAt = -1;
    for (const [i, item] of items.entries()) {
      if (!this.#add(item, { path: pathOf(i), isNew: i > answers })) leftAt = i;
    }
    const last = items.at(-1);
    if (!last || leftAt < items.length - 1) return;
    if (["user", "tool"].includes(this.finish().at(-1)?.role ?? "")) return;
    const name = JSON.stringify(String(last["type"]).slice(0, 80));
    throw new AppError("bad_request", `${pathOf(leftAt)}: unknown input item type: ${name}`);
  }

  /** Returns true if the type of the item is known. */
  #add(item: Fields, place: Place): boolean {
    const { path } = place;
    const type =
      optional(readText)(item["type"], `${path}.type`) ?? (item["role"] === undefined ? undefined : "message");
    switch (type) {
      case "message":
        return this.#addMessage(item, place);
      case "function_call":
        return this.#addCall(item, path, readArguments(item["arguments"], this.#left));
      case "custom_tool_call":
        return this.#addCall(item, path, customArguments(readText(item["input"], `${path}.input`)));
      case "function_call_output":
      case "custom_tool_call_output":
        return this.#addResult(item, path);
      case "reasoning":
        this.#endTurn();
        this.#thinking += readReasoning(item, path);
        return true;
      case "item_reference":
        return this.#add(this.#said(item, path), place);
      case "mcp_list_tools":
        return true; // the tools of this request are listed anew
      case "web_search_call":
        return true; // it states that there was a search, not its result
      case undefined:
        throw new AppError("bad_request", `${path}: input item missing required 'type' field`);
      default:
        return isForeignOutput(type) ? this.#addResult(item, path) : this.#addForeign(item, type);
    }
  }

  #addForeign(item: Fields, type: string): boolean {
    const call = foreignCall(item, type, this.#left);
    if (!call) {
      this.#left.push(type.slice(0, 40));
      return false;
    }
    const { id, name, arguments: args, result } = call;
    if (id !== undefined) this.#callNames.set(id, name);
    this.#assistant().calls.push({ ...(id === undefined ? {} : { id }), function: { name, arguments: args } });
    if (result !== undefined) this.#addToolMessage({ content: result }, id);
    return true;
  }

  /** The assistant's text joins its turn; another role ends it. */
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
    const text = `${path}: ${JSON.stringify(id.slice(0, 80))} is not a recent item`;
    throw new AppError("bad_request", `${text}; expected the item itself (clients send it with store: false)`);
  }

  #addMessage(item: Fields, { path, isNew }: Place): true {
    const role = readText(item["role"], `${path}.role`);
    const isKnown = ["system", "user", "assistant", "developer"].includes(role);
    if (!isKnown && isNew) throw unexpected(`${path}.role`, '"user", "assistant", "system" or "developer"', role);
    const ours = !isKnown ? "user" : role === "developer" ? "system" : role;
    const about = { isNew: isNew && ours === "user", isAnswer: ours === "assistant", left: this.#left };
    this.say({ role: ours, ...readContent(item["content"], `${path}.content`, about) });
    return true;
  }

  #addCall(item: Fields, path: string, args: Record<string, unknown>): true {
    const id = readText(item["call_id"], `${path}.call_id`);
    const namespace = optional(readText)(item["namespace"], `${path}.namespace`);
    const name = joinedName(namespace, readText(item["name"], `${path}.name`));
    this.#callNames.set(id, name);
    this.#assistant().calls.push({ id, function: { name, arguments: args } });
    return true;
  }

  #addResult(item: Fields, path: string): true {
    const id = optional(readText)(item["call_id"] ?? item["id"], `${path}.call_id`);
    const output = item["output"] ?? item["status"];
    const parts = Array.isArray(output) ? output : isObject(output) ? [output] : undefined;
    const about = { isNew: false, left: this.#left };
    this.#addToolMessage(
      parts?.some(hasReader) ? readContent(parts, `${path}.output`, about) : { content: toolResultText(output) },
      id,
    );
    return true;
  }

  #addToolMessage(result: ReturnType<typeof joinParts>, id: string | undefined): void {
    const name = id === undefined ? undefined : this.#callNames.get(id);
    this.finish();
    this.#messages.push({
      role: "tool",
      ...result,
      ...(id === undefined ? {} : { tool_call_id: id }),
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

interface About {
  /** True if it is a new message of the user. */
  readonly isNew: boolean;
  readonly isAnswer?: boolean;
  readonly left: LeftOut;
}

/** A text, or parts whose texts become lines. */
function readContent(value: unknown, path: string, about: About): ReturnType<typeof joinParts> {
  if (typeof value === "string") return { content: value.toWellFormed() };
  if (!about.isNew && (value === undefined || value === null)) return { content: "" };
  const reader = new PartReader({ readers: READERS, unknown, ...about });
  const parts = readList((part, at) => reader.read(part, at))(value, path);
  reader.finish();
  return joinParts(parts.flat(), "\n");
}

const textIn = (part: Fields, path: string) => [readText(part["text"], `${path}.text`)];
const imageIn = (part: Fields, path: string) => [readImage(part["image_url"], path)];

const READERS = {
  input_text: textIn,
  output_text: textIn,
  text: textIn,
  refusal: (part: Fields, path: string) => [readText(part["refusal"], `${path}.refusal`)],
  input_image: imageIn,
  computer_screenshot: imageIn,
  input_audio: (part: Fields, path: string) => [readAudio(part["input_audio"], `${path}.input_audio`)],
  input_file: (_: Fields, path: string) => {
    throw new AppError("bad_request", `${path}: file inputs are not currently supported`);
  },
};

const hasReader = (part: unknown): boolean => isObject(part) && Object.hasOwn(READERS, String(part["type"]));

const unknown = (type: unknown, path: string): AppError =>
  unexpected(`${path}.type`, '"input_text", "output_text", "input_image" or "input_audio"', type);

/** The model's thinking: in our format, or in other servers'. */
function readReasoning(item: Fields, path: string): string {
  const texts = (key: string): string =>
    (
      optional(readList((part, at) => optional(readText)(readFields(part, at)["text"], `${at}.text`) ?? ""))(
        item[key],
        `${path}.${key}`,
      ) ?? []
    ).join("\n");
  const kept = optional(readText)(item["encrypted_content"], path) ?? "";
  return texts("content") || texts("summary") || (isEncrypted(kept) ? "" : kept);
}

/** Other servers put base64 there; ours puts plain text. */
const isEncrypted = (text: string): boolean => text.length > 64 && /^[\w+/=-]+$/.test(text);
