/** Exports chats as files, and imports files of this and other programs. */
import { isObject } from "../../../base/index.ts";
import { makeId } from "../base/ids.ts";
import type { Folder, Prompt } from "./library-types.ts";
import { isPlace, isTitleAuthor, type CallResult, type Chat, type Message, type ServerTool } from "./tree.ts";

const FORMAT = "hearth-chats";
const FILE_CHARS_MAX = 512 * 1024 * 1024;
const MESSAGES_MAX = 200_000;
const RECORDS_MAX = 10_000;

export interface ChatFile {
  readonly format: typeof FORMAT;
  readonly version: 1;
  readonly chats: readonly Chat[];
  readonly messages: readonly Message[];
  /** Absent in files of older pages. */
  readonly folders?: readonly Folder[];
  readonly prompts?: readonly Prompt[];
}

type Content = Pick<ChatFile, "chats" | "messages" | "folders" | "prompts">;

export const fileOf = (
  chats: readonly Chat[],
  messages: readonly Message[],
  more: Pick<Content, "folders" | "prompts"> = {},
): ChatFile => ({ format: FORMAT, version: 1, chats, messages, ...more });

/** The chats of a file under new ids, so that they replace no other chat. Throws the error in the file. */
export function readChatFile(text: string): { [K in keyof Content]-?: NonNullable<Content[K]> } {
  if (text.length > FILE_CHARS_MAX) throw new Error("the file is too large");
  const { format, version, chats, messages, folders, prompts } = record(JSON.parse(text), "the file");
  if (format !== FORMAT) throw new Error(`format: expected "${FORMAT}", got ${JSON.stringify(format) ?? "nothing"}`);
  if (version !== 1) throw new Error(`version: expected 1, got ${JSON.stringify(version)}`);
  if (list(messages, "messages").length > MESSAGES_MAX) throw new Error(`messages: expected at most ${MESSAGES_MAX}`);
  const names = new Map<string, string>();
  const times = new Map(list(messages, "messages").map((each, i) => timeOf(record(each, `messages[${i}]`))));
  const renamed = (id: string): string => {
    const name = names.get(id) ?? makeId(times.get(id)); // branches are sorted by id
    names.set(id, name);
    return name;
  };
  const read = list(chats, "chats").map((each, i) => chatOf(record(each, `chats[${i}]`), renamed));
  const known = new Set(read.map(({ id }) => id));
  const said = list(messages, "messages")
    .map((each, i) => messageOf(record(each, `messages[${i}]`), renamed))
    .filter(({ chat }) => known.has(chat));
  return {
    chats: read,
    messages: said,
    folders: records(folders, "folders").map((each) => folderOf(each, renamed)),
    prompts: records(prompts, "prompts").map(promptOf),
  };
}

function records(value: unknown, what: string): Fields[] {
  const all = list(value ?? [], what);
  if (all.length > RECORDS_MAX) throw new Error(`${what}: expected at most ${RECORDS_MAX}`);
  return all.map((each, i) => record(each, `${what}[${i}]`));
}

const folderOf = ({ id, name, isClosed }: Fields, renamed: (id: string) => string): Folder => ({
  id: renamed(text(id, "folders.id")),
  name: text(name, "folders.name").slice(0, 200),
  ...(isClosed === true ? { isClosed } : {}),
});

function promptOf({ kind, name, text: content }: Fields): Prompt {
  if (kind !== "message" && kind !== "system") {
    throw new Error(`prompts.kind: expected message or system, got ${JSON.stringify(kind)}`);
  }
  const said = text(content, "prompts.text");
  return { id: makeId(), kind, name: text(name, "prompts.name").slice(0, 200), text: said };
}

type Fields = Readonly<Record<string, unknown>>;

const timeOf = ({ id, at }: Fields) => [id, typeof at === "number" ? at : undefined] as const;

/** Leaves out `servers` and `standing`: a file must not switch tools on, or allow their calls. */
function chatOf(fields: Fields, renamed: (id: string) => string): Chat {
  const { id, title, at, updated, model, system, leaf, options, think, tools, titled, pinned, folder } = fields;
  return {
    id: renamed(text(id, "id")),
    title: text(title, "title").slice(0, 200),
    at: number(at, "at"),
    updated: number(updated, "updated"),
    model: text(model ?? "", "model"),
    place: isPlace(fields["place"]) ? fields["place"] : "server",
    system: text(system ?? "", "system"),
    options: numbers(options ?? {}),
    tools: text(tools ?? "", "tools"),
    leaf: leaf === null || leaf === undefined ? null : renamed(text(leaf, "leaf")),
    ...(typeof think === "boolean" ? { think } : {}),
    ...(isTitleAuthor(titled) ? { titled } : {}),
    ...(pinned === true ? { pinned } : {}),
    ...(typeof folder === "string" ? { folder: renamed(folder) } : {}),
  };
}

const ROLES: ReadonlySet<unknown> = new Set(["user", "assistant", "tool"]);
const STATES: ReadonlySet<unknown> = new Set(["stopped", "failed", "length"]);
/** Optional text fields. */
const TEXTS = ["thinking", "toolName", "toolCallId", "model", "error"] as const;

function messageOf(fields: Fields, renamed: (id: string) => string): Message {
  const { id, chat, parent, role, content, at, state, pictures, files, calls, stats, place, together } = fields;
  if (!ROLES.has(role)) throw new Error(`role: expected user, assistant or tool, got ${JSON.stringify(role)}`);
  return {
    id: renamed(text(id, "id")),
    chat: renamed(text(chat, "chat")),
    parent: parent === null || parent === undefined ? null : renamed(text(parent, "parent")),
    role: role as Message["role"], // checked above
    content: text(content, "content"),
    at: number(at, "at"),
    ...Object.fromEntries(TEXTS.flatMap((name) => (typeof fields[name] === "string" ? [[name, fields[name]]] : []))),
    ...(STATES.has(state) ? { state: state as NonNullable<Message["state"]> } : {}),
    ...(isPlace(place) ? { place } : {}),
    ...(together === true ? { together } : {}),
    ...(pictures === undefined ? {} : { pictures: list(pictures, "pictures").map(pictureOf) }),
    ...(files === undefined ? {} : { files: list(files, "files").map(fileIn) }),
    ...(calls === undefined ? {} : { calls: list(calls, "calls").map(callOf) }),
    ...(stats === undefined ? {} : { stats: statsOf(record(stats, "stats")) }),
  };
}

function pictureOf(value: unknown): NonNullable<Message["pictures"]>[number] {
  const { type, base64 } = record(value, "pictures");
  const known = text(type, "pictures.type");
  if (!/^image\/(png|jpeg|webp|gif|bmp|avif)$/.test(known))
    throw new Error(`pictures.type: '${known}' is not a picture`);
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text(base64, "pictures.base64"))) throw new Error("pictures.base64: not base64");
  return { type: known, base64: text(base64, "pictures.base64") };
}

function fileIn(value: unknown): NonNullable<Message["files"]>[number] {
  const { name, text: content } = record(value, "files");
  return { name: text(name, "files.name").slice(0, 200), text: text(content, "files.text") };
}

function callOf(value: unknown): NonNullable<Message["calls"]>[number] {
  const { id, name, arguments: args, tool, isBegun, result } = record(value, "calls");
  return {
    name: text(name, "calls.name"),
    arguments: args ?? {},
    ...(typeof id === "string" ? { id } : {}),
    ...(tool === undefined ? {} : { tool: toolOf(record(tool, "calls.tool")) }),
    ...(isBegun === true ? { isBegun } : {}),
    ...(result === undefined ? {} : { result: resultOf(record(result, "calls.result")) }),
  };
}

const toolOf = ({ server, name }: Fields): ServerTool => ({
  server: text(server, "calls.tool.server"),
  name: text(name, "calls.tool.name"),
});

const resultOf = ({ content, text: shown, isCut, isError }: Fields): CallResult => ({
  content: text(content, "calls.result.content"),
  text: text(shown, "calls.result.text"),
  isCut: isCut === true,
  isError: isError === true,
});

const statsOf = (fields: Fields): NonNullable<Message["stats"]> => ({
  promptTokens: number(fields["promptTokens"] ?? 0, "stats.promptTokens"),
  promptMs: number(fields["promptMs"] ?? 0, "stats.promptMs"),
  tokens: number(fields["tokens"] ?? 0, "stats.tokens"),
  ms: number(fields["ms"] ?? 0, "stats.ms"),
  loadMs: number(fields["loadMs"] ?? 0, "stats.loadMs"),
  wasCut: fields["wasCut"] === true,
});

function record(value: unknown, what: string): Fields {
  if (isObject(value)) return value;
  throw new Error(`${what}: expected an object`);
}

function list(value: unknown, what: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw new Error(`${what}: expected a list`);
}

function text(value: unknown, what: string): string {
  if (typeof value === "string") return value;
  throw new Error(`${what}: expected a text`);
}

function number(value: unknown, what: string): number {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw new Error(`${what}: expected a number`);
}

const numbers = (value: unknown): Record<string, number> =>
  Object.fromEntries(
    Object.entries(record(value, "options")).flatMap(([name, each]) =>
      typeof each === "number" ? [[name, each]] : [],
    ),
  );
