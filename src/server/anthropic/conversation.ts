/**
 * Converts the conversation of an Anthropic request to our messages: content blocks are joined into texts, images,
 * thinking and tool calls, and tool results become separate messages. Blocks:
 * https://docs.anthropic.com/en/api/messages
 */
import {
  AppError,
  isObject,
  optional,
  readBoolean,
  readFields,
  readList,
  readText,
  unexpected,
  type Fields,
  type Read,
} from "../../base/index.ts";
import { mcpName } from "../../runtime/mcp/names.ts";
import type { Message, ToolCall } from "../../runtime/portable.ts";
import { resultContent } from "../answers/server-tools.ts";
import { joinParts, type ContentPart } from "../answers/content-parts.ts";
import { decodeBase64 } from "../http/base64.ts";
import { PartReader, readArguments, toolResultText, type LeftOut } from "../requests/history.ts";

/**
 * Throws `bad_request`.
 * @param left collects dropped content
 */
export function readConversation(body: { system?: unknown; messages?: unknown[] }, left: LeftOut = []): Message[] {
  const callNames = new Map<string, string>(); // tool name by call id
  const answers = (body.messages ?? []).findLastIndex((each) => isObject(each) && each["role"] === "assistant");
  const system = optional(readSystem)(body.system, "system");
  const turns = (body.messages ?? []).flatMap((value, i) =>
    readTurn(value, { path: `messages.${i}`, isNew: i > answers, callNames, left }),
  );
  return [...(system ? [{ role: "system", content: system }] : []), ...turns];
}

/** A text, or text blocks joined without a separator. */
const readSystem: Read<string> = (value, path) =>
  typeof value === "string" ? readText(value, path) : readList(readTextBlock)(value, path).join("");

const readTextBlock: Read<string> = (value, path) => {
  const block = readFields(value, path);
  if (block["type"] !== "text") throw unexpected(`${path}.type`, '"text"', block["type"]);
  return readText(block["text"], `${path}.text`);
};

interface Place {
  readonly path: string;
  /** True if no assistant message follows. */
  readonly isNew: boolean;
  readonly callNames: Map<string, string>;
  readonly left: LeftOut;
}

function readTurn(value: unknown, { path, ...place }: Place): Message[] {
  const { role: given, content } = readFields(value, path);
  const role = readText(given, `${path}.role`);
  if (!["user", "assistant", "system"].includes(role)) {
    throw unexpected(`${path}.role`, '"user", "assistant" or "system"', role);
  }
  if (typeof content === "string") return [{ role, content: content.toWellFormed() }];
  if (!place.isNew && (content === undefined || content === null)) return [{ role, content: "" }];
  const at = `${path}.content`;
  const turn = new TurnBuilder(role, place);
  readList((block, where) => turn.add(readFields(block, where), where))(content, at);
  return turn.finish();
}

/**
 * Builds the messages of one turn: tool results end the assistant's message before them; the user's text follows all of
 * them.
 */
class TurnBuilder {
  readonly #role: string;
  readonly #place: Omit<Place, "path">;
  readonly #reader: PartReader;
  readonly #finished: Message[] = [];
  #parts: ContentPart[] = [];
  #thinking = "";
  #calls: ToolCall[] = [];
  #begun = false;

  constructor(role: string, place: Omit<Place, "path">) {
    this.#role = role;
    this.#place = place;
    this.#reader = readerOf({
      isNew: place.isNew && role === "user",
      isAnswer: role === "assistant",
      left: place.left,
    });
  }

  add(block: Fields, path: string): void {
    const type = readText(block["type"], `${path}.type`);
    if (CALLS.has(type)) return this.#addCall(block, path);
    if (RESULT.test(type)) return this.#addResult(readResult(block, path, this.#place.left));
    if (type === "redacted_thinking") return; // encrypted for the provider
    if (type === "thinking") this.#thinking += optional(readText)(block["thinking"], `${path}.thinking`) ?? "";
    else this.#parts.push(...this.#reader.read(block, path));
    this.#begun = true;
  }

  finish(): Message[] {
    if (this.#finished.length === 0) this.#reader.finish();
    if (this.#begun || this.#finished.length === 0) this.#flush();
    return this.#finished;
  }

  #addCall(block: Fields, path: string): void {
    const id = readRequired(block, { path, key: "id" });
    const name = nameOf(block, readRequired(block, { path, key: "name" }));
    this.#place.callNames.set(id, name);
    this.#calls.push({ id, function: { name, arguments: readArguments(block["input"], this.#place.left) } });
    this.#begun = true;
  }

  #addResult({ id, parts }: ToolResult): void {
    if (this.#role === "assistant" && this.#begun) this.#flush();
    const name = this.#place.callNames.get(id);
    this.#finished.push({
      role: "tool",
      ...joinParts(parts, ""),
      tool_call_id: id,
      ...(name === undefined ? {} : { tool_name: name }),
    });
  }

  #flush(): void {
    this.#finished.push({
      role: this.#role,
      ...joinParts(this.#parts, ""),
      ...(this.#thinking ? { thinking: this.#thinking } : {}),
      ...(this.#calls.length > 0 ? { tool_calls: this.#calls } : {}),
    });
    [this.#parts, this.#thinking, this.#calls, this.#begun] = [[], "", [], false];
  }
}

/** Tools of a server, in the model's view, have the server's name in their name. */
const nameOf = ({ type, server_name: server }: Fields, name: string): string =>
  type === "mcp_tool_use" && typeof server === "string" ? mcpName(server, name) : name;

/** Calls of the client's tools, and of tools that other servers ran. */
const CALLS: ReadonlySet<string> = new Set(["tool_use", "server_tool_use", "mcp_tool_use"]);
const RESULT = /(?:^|_)tool_result$/;

interface ToolResult {
  readonly id: string;
  readonly parts: readonly ContentPart[];
}

function readResult(block: Fields, path: string, left: LeftOut): ToolResult {
  const id = readRequired(block, { path, key: "tool_use_id" });
  const isError = optional(readBoolean)(block["is_error"], `${path}.is_error`) ?? false;
  const { content } = block;
  const reader = readerOf({ isNew: false, left });
  const given = Array.isArray(content)
    ? content.flatMap((each, i) => reader.read(each, `${path}.content.${i}`))
    : [toolResultText(content)];
  if (block["type"] === "mcp_tool_result") {
    return { id, parts: [resultContent({ text: textOf(given), isError }, "a tool server")] };
  }
  return { id, parts: isError && !/^\s*error\b/i.test(textOf(given)) ? ["Error: ", ...given] : given };
}

/** A text, or blocks of content. */
function readContent(value: unknown, path: string): readonly ContentPart[] {
  if (typeof value === "string") return [value.toWellFormed()];
  return readList((block, at) => readContentBlock(readFields(block, at), at))(value, path).flat();
}

const textOf = (parts: readonly ContentPart[]): string => parts.filter((part) => typeof part === "string").join("");

/** Readers of content blocks, by type. */
const READERS = {
  text: (block: Fields, path: string) => [readText(block["text"], `${path}.text`)],
  image: (block: Fields, path: string) => [readImage(block["source"], `${path}.source`)],
  document: readDocument,
  search_result: (block: Fields, path: string) => {
    const found = textOf(readContent(block["content"], `${path}.content`));
    const [title, source] = [readText(block["title"], `${path}.title`), readText(block["source"], `${path}.source`)];
    return [`${title} (${source})\n${found}\n`];
  },
  /** Its content is encrypted. */
  web_search_result: (block: Fields, path: string) => [
    `${readText(block["title"], `${path}.title`)} (${readText(block["url"], `${path}.url`)})\n`,
  ],
  /** A tool found by a tool search. */
  tool_reference: (block: Fields, path: string) => [`tool ${readText(block["tool_name"], `${path}.tool_name`)}\n`],
  /** A summary of earlier messages. */
  compaction: (block: Fields, path: string) => [optional(readText)(block["content"], `${path}.content`) ?? ""],
};

const readerOf = (about: { isNew: boolean; isAnswer?: boolean; left: LeftOut }): PartReader =>
  new PartReader({ readers: READERS, unknown, ...about });

const unknown = (type: unknown, path: string): AppError =>
  unexpected(`${path}.type`, "a block of text, image, tool_use, tool_result or thinking", type);

function readContentBlock(block: Fields, path: string): readonly ContentPart[] {
  const { type } = block;
  if (type !== "text" && type !== "image") throw unknown(type, path);
  return READERS[type](block, path);
}

function readImage(value: unknown, path: string): Uint8Array {
  if (value === undefined || value === null)
    throw new AppError("bad_request", `${path}: invalid image source: expected an object of type base64, got none`);
  const { type, data } = readFields(value, path);
  if (type === "base64") return decodeBase64(readText(data, `${path}.data`), `${path}.data`);
  throw new AppError("bad_request", `invalid image source type: ${String(type)}. Only base64 images are supported.`);
}

/** Documents that are text. */
function readDocument(block: Fields, path: string): readonly ContentPart[] {
  const source = readFields(block["source"], `${path}.source`);
  const title = optional(readText)(block["title"], `${path}.title`);
  const heading = title ? `${title}\n` : "";
  if (source["type"] === "text") {
    return [`${heading}${readText(source["data"], `${path}.source.data`)}\n`];
  }
  if (source["type"] === "content") {
    return [heading, ...readContent(source["content"], `${path}.source.content`), "\n"];
  }
  throw unexpected(
    `${path}.source.type`,
    '"text" or "content": only documents that are text can be read',
    source["type"],
  );
}

function readRequired(block: Fields, { path, key }: { path: string; key: string }): string {
  const value = optional(readText)(block[key], `${path}.${key}`);
  if (value) return value;
  throw new AppError("bad_request", `${path}: ${String(block["type"])} block missing required '${key}' field`);
}
