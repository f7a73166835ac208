/**
 * The conversation of an Anthropic request as messages of ours: content blocks are put together into texts, images,
 * thinking and tool calls, and tool results become messages of their own. What a model here could not read is refused,
 * never dropped.
 * Blocks: https://docs.anthropic.com/en/api/messages
 */
import { AppError } from "../../base/errors.ts";
import type { Message, ToolCall } from "../../runtime/runtime.ts";
import { joinParts, type ContentPart } from "../content-parts.ts";
import { decodeBase64 } from "../http/base64.ts";
import {
  optional,
  readBoolean,
  readFields,
  readList,
  readText,
  unexpected,
  type Fields,
  type Read,
} from "../fields.ts";

/** Throws `bad_request`. */
export function readConversation(body: { system?: unknown; messages?: unknown[] }): Message[] {
  const callNames = new Map<string, string>(); // tool by the id of its call
  const system = optional(readSystem)(body.system, "system");
  const turns = (body.messages ?? []).flatMap((value, i) => readTurn(value, { path: `messages.${i}`, callNames }));
  return [...(system ? [{ role: "system", content: system }] : []), ...turns];
}

/** A text, or text blocks, which are joined as they are. */
const readSystem: Read<string> = (value, path) =>
  typeof value === "string" ? readText(value, path) : readList(readTextBlock)(value, path).join("");

const readTextBlock: Read<string> = (value, path) => {
  const block = readFields(value, path);
  if (block["type"] !== "text") throw unexpected(`${path}.type`, '"text"', block["type"]);
  return readText(block["text"], `${path}.text`);
};

interface Place {
  readonly path: string;
  readonly callNames: Map<string, string>;
}

function readTurn(value: unknown, { path, callNames }: Place): Message[] {
  const { role: given, content } = readFields(value, path);
  const role = readText(given, `${path}.role`);
  if (!["user", "assistant", "system"].includes(role)) {
    throw unexpected(`${path}.role`, '"user", "assistant" or "system"', role);
  }
  if (typeof content === "string") return [{ role, content: content.toWellFormed() }];
  const at = `${path}.content`;
  const draft = new Draft(role, callNames);
  readList((block, where) => draft.add(readFields(block, where), where))(content, at);
  return draft.finish();
}

/** One turn in the making. A tool result ends what the assistant said before it; the user speaks after all of them. */
class Draft {
  readonly #role: string;
  readonly #callNames: Map<string, string>;
  readonly #finished: Message[] = [];
  #parts: ContentPart[] = [];
  #thinking = "";
  #calls: ToolCall[] = [];
  #begun = false;

  constructor(role: string, callNames: Map<string, string>) {
    this.#role = role;
    this.#callNames = callNames;
  }

  add(block: Fields, path: string): void {
    const type = readText(block["type"], `${path}.type`);
    switch (type) {
      case "tool_use":
      case "server_tool_use":
        return this.#addCall(block, path);
      case "tool_result":
      case "web_search_tool_result":
        return this.#addResult(readResult(block, path));
      case "redacted_thinking":
        return; // encrypted for someone else
      case "thinking":
        this.#thinking += readText(block["thinking"], `${path}.thinking`);
        break;
      default:
        this.#parts.push(...readContentBlock(block, path));
    }
    this.#begun = true;
  }

  finish(): Message[] {
    if (this.#begun || this.#finished.length === 0) this.#flush();
    return this.#finished;
  }

  #addCall(block: Fields, path: string): void {
    const id = readRequired(block, { path, key: "id" });
    const name = readRequired(block, { path, key: "name" });
    const input = optional(readFields)(block["input"], `${path}.input`) ?? {};
    this.#callNames.set(id, name);
    this.#calls.push({ id, function: { name, arguments: { ...input } } });
    this.#begun = true;
  }

  #addResult({ id, parts }: ToolResult): void {
    if (this.#role === "assistant" && this.#begun) this.#flush();
    const name = this.#callNames.get(id);
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

interface ToolResult {
  readonly id: string;
  readonly parts: readonly ContentPart[];
}

function readResult(block: Fields, path: string): ToolResult {
  const id = readRequired(block, { path, key: "tool_use_id" });
  const isError = optional(readBoolean)(block["is_error"], `${path}.is_error`) ?? false;
  const parts = readContent(block["content"] ?? "", `${path}.content`);
  return { id, parts: isError && !/^\s*error\b/i.test(textOf(parts)) ? ["Error: ", ...parts] : parts };
}

/** A text, or blocks of content. */
function readContent(value: unknown, path: string): readonly ContentPart[] {
  if (typeof value === "string") return [value.toWellFormed()];
  return readList((block, at) => readContentBlock(readFields(block, at), at))(value, path).flat();
}

const textOf = (parts: readonly ContentPart[]): string => parts.filter((part) => typeof part === "string").join("");

function readContentBlock(block: Fields, path: string): readonly ContentPart[] {
  switch (block["type"]) {
    case "text":
      return [readText(block["text"], `${path}.text`)];
    case "image":
      return [readImage(block["source"], `${path}.source`)];
    case "document":
      return readDocument(block, path);
    case "search_result": {
      const found = textOf(readContent(block["content"], `${path}.content`));
      const [title, source] = [readText(block["title"], `${path}.title`), readText(block["source"], `${path}.source`)];
      return [`${title} (${source})\n${found}\n`];
    }
    case "web_search_result": // its content is encrypted
      return [`${readText(block["title"], `${path}.title`)} (${readText(block["url"], `${path}.url`)})\n`];
    default:
      throw unexpected(`${path}.type`, "a block of text, image, tool_use, tool_result or thinking", block["type"]);
  }
}

function readImage(value: unknown, path: string): Uint8Array {
  if (value === undefined || value === null) throw new AppError("bad_request", `${path}: invalid image source`);
  const { type, data } = readFields(value, path);
  if (type === "base64") return decodeBase64(readText(data, `${path}.data`));
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
