/**
 * A chat as a tree: an edit or another answer is a new branch beside the old one. A chat shows one path through it,
 * from the first message to its leaf.
 */

export interface Picture {
  /** Media type such as `image/png`. */
  readonly type: string;
  readonly base64: string;
}

export interface TextFile {
  readonly name: string;
  readonly text: string;
}

export interface ToolCall {
  readonly id?: string;
  /** The model's name of the tool. */
  readonly name: string;
  readonly arguments: unknown;
  /** A tool of a tool server, which this page calls. Absent: the user enters the result. */
  readonly tool?: ServerTool;
  /** Set before the call is made. Without a result: the end of the call is unknown. */
  readonly isBegun?: true;
  readonly result?: CallResult;
}

export interface ServerTool {
  readonly server: string;
  readonly name: string;
}

export interface CallResult {
  /** For the model: between the markers of outside text. */
  readonly content: string;
  /** Displayed text: the beginning of the result. */
  readonly text: string;
  /** True if `text` is not the whole result. */
  readonly isCut: boolean;
  readonly isError: boolean;
}

/** The user's standing decision about a tool in a chat. */
export type Standing = "always" | "never";

export interface AnswerStats {
  readonly promptTokens: number;
  readonly promptMs: number;
  readonly tokens: number;
  readonly ms: number;
  readonly loadMs: number;
  /** True if a part of the chat was dropped to fit the context. */
  readonly wasCut: boolean;
}

/** The places where a model runs: on the server, in this page with Hearth's engine, or in this page with WebLLM. */
export const PLACES = ["server", "page", "webllm"] as const;
export type Place = (typeof PLACES)[number];

export const isPlace = (value: unknown): value is Place => PLACES.some((place) => place === value);

export interface Message {
  readonly id: string;
  readonly chat: string;
  readonly parent: string | null;
  readonly role: "user" | "assistant" | "tool";
  readonly content: string;
  readonly at: number;
  readonly thinking?: string;
  readonly calls?: readonly ToolCall[];
  /** For a tool's result. */
  readonly toolName?: string;
  readonly toolCallId?: string;
  readonly pictures?: readonly Picture[];
  readonly files?: readonly TextFile[];
  /** The model that answered. */
  readonly model?: string;
  readonly place?: Place;
  readonly stats?: AnswerStats;
  /**
   * Absent: complete. `length`: it can be continued; `stopped`, `failed`, `running`: it ended early, or is not over.
   */
  readonly state?: "running" | "stopped" | "failed" | "length";
  /** Error text. */
  readonly error?: string;
  /** True: shown in columns with its siblings of the same mark, until one of them is chosen. */
  readonly together?: boolean;
}

export interface Chat {
  readonly id: string;
  readonly title: string;
  readonly at: number;
  readonly updated: number;
  readonly model: string;
  readonly place: Place;
  readonly system: string;
  /** By the API's names; absent ones stay at the model's defaults. */
  readonly options: Readonly<Record<string, number>>;
  /** Undefined: the model's default. */
  readonly think?: boolean;
  /** A list of tools as JSON; blank: none. */
  readonly tools: string;
  /** Names of the tool servers that are switched on. */
  readonly servers?: readonly string[];
  /** By `SERVER/TOOL`. */
  readonly standing?: Readonly<Record<string, Standing>>;
  /** The message at the end of the shown path. */
  readonly leaf: string | null;
  /**
   * The author of the title: the page from the first line, the model, or the user. Absent: an older page did not store
   * it.
   */
  readonly titled?: TitleAuthor;
  readonly pinned?: boolean;
  /** Id of a folder; an unknown one counts as absent. */
  readonly folder?: string | null;
}

export type TitleAuthor = "line" | "model" | "person";

export const isTitleAuthor = (value: unknown): value is TitleAuthor =>
  value === "line" || value === "model" || value === "person";

export type Messages = ReadonlyMap<string, Message>;

/** From the first message to `leaf`. */
export function pathTo(messages: Messages, leaf: string | null): Message[] {
  const path: Message[] = [];
  const seen = new Set<string>(); // an imported chat may contain a cycle
  for (let at = leaf; at !== null && !seen.has(at);) {
    const message = messages.get(at);
    if (!message) break;
    seen.add(at);
    path.push(message);
    at = message.parent;
  }
  return path.reverse();
}

/** The branches at a message, itself included, oldest first. */
export function siblingsOf(messages: Messages, { parent, role }: Message): Message[] {
  const found = [...messages.values()].filter((each) => each.parent === parent && each.role === role);
  return found.toSorted((a, b) => (a.id < b.id ? -1 : 1));
}

/** The answers in columns with this one, itself included; empty if it stands alone. */
export function columnsOf(messages: Messages, message: Message): Message[] {
  const group = message.together ? siblingsOf(messages, message).filter(({ together }) => together) : [];
  return group.length > 1 ? group : [];
}

export function withoutMark(message: Message): Message {
  const { together: _, ...rest } = message;
  return rest;
}

/** Number of branches at each parent, for all messages at once. */
export function branchCounts(messages: Messages): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { parent, role } of messages.values()) {
    const key = `${parent ?? ""} ${role}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

export const branchKey = ({ parent, role }: Message): string => `${parent ?? ""} ${role}`;

/** The end of the newest path through a message. */
export function leafUnder(messages: Messages, id: string): string {
  const children = new Map<string, string>(); // the newest child of each
  for (const { id: child, parent } of messages.values()) {
    if (parent !== null && (children.get(parent) ?? "") < child) children.set(parent, child);
  }
  let leaf = id;
  const seen = new Set([leaf]);
  for (let next = children.get(leaf); next !== undefined && !seen.has(next); next = children.get(leaf)) {
    seen.add(next);
    leaf = next;
  }
  return leaf;
}

/** A message and everything after it, on every branch. */
export function withDescendants(messages: Messages, id: string): Set<string> {
  const children = Map.groupBy(messages.values(), ({ parent }) => parent);
  const found = new Set([id]);
  for (const at of found) for (const child of children.get(at) ?? []) found.add(child.id);
  return found;
}

/** The title of a new chat: the beginning of its first question. */
export function titleOf(
  { content, files, pictures }: Pick<Message, "content" | "files" | "pictures">,
  words: { readonly picture: string; readonly newChat: string },
): string {
  const line = content.trim().split("\n")[0]?.trim() ?? "";
  if (line === "") return files?.[0]?.name ?? (pictures?.length ? words.picture : words.newChat);
  return line.length <= 60 ? line : `${line.slice(0, 57).replace(/\s+\S*$/, "")}…`;
}

/** A message in the API's format. */
export interface WireMessage {
  readonly role: string;
  readonly content: string;
  readonly thinking?: string;
  readonly images?: readonly string[];
  readonly tool_calls?: readonly object[];
  readonly tool_name?: string;
  readonly tool_call_id?: string;
}

/** The messages for the model: the system prompt, then the path. Text files precede the question about them. */
export function wireMessages(system: string, path: readonly Message[]): WireMessage[] {
  const first = system.trim() === "" ? [] : [{ role: "system", content: system }];
  return [...first, ...path.flatMap((message) => [wireOf(message), ...(message.calls ?? []).flatMap(wireResult)])];
}

function wireOf(message: Message): WireMessage {
  const { role, content, thinking, calls, files = [], pictures = [], toolName, toolCallId } = message;
  const texts = files.map(({ name, text }) => `${name}:\n\n${fenced(text)}\n\n`).join("");
  return {
    role,
    content: texts + content,
    ...(thinking ? { thinking } : {}),
    ...(pictures.length > 0 ? { images: pictures.map(({ base64 }) => base64) } : {}),
    ...(calls && calls.length > 0 ? { tool_calls: calls.map(wireCall) } : {}),
    ...(toolName === undefined ? {} : { tool_name: toolName }),
    ...(toolCallId === undefined ? {} : { tool_call_id: toolCallId }),
  };
}

const wireCall = ({ id, name, arguments: args }: ToolCall): object => ({
  ...(id === undefined ? {} : { id }),
  function: { name, arguments: args },
});

const wireResult = ({ id, name, result }: ToolCall): WireMessage[] =>
  result
    ? [{ role: "tool", content: result.content, tool_name: name, ...(id === undefined ? {} : { tool_call_id: id }) }]
    : [];

/** Puts a text between fences longer than any in it. */
export function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/^`{3,}/gm)].map(([fence]) => fence.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}\n${text}\n${fence}`;
}

/** Throws if the text is not a list of tools. */
export function toolsOf(text: string): object[] {
  if (text.trim() === "") return [];
  const tools: unknown = JSON.parse(text);
  if (!Array.isArray(tools)) throw new Error('tools: expected a list, as in [{"type": "function", …}]');
  return tools as object[];
}
