/** Creates messages, and has a model write an answer. */
import { makeId } from "../base/ids.ts";
import type { Answering, ChatParts, NewMessage } from "./chat-types.ts";
import { endOf, failureText, withoutEnd } from "./ends.ts";
import type { Live } from "./live.ts";
import type { OfferedTool } from "../tools/servers.ts";
import { toolsOf, wireMessages, type Chat, type Message, type ToolCall } from "./tree.ts";

export const questionOf = (chat: string, parent: string | null, { content, pictures, files }: NewMessage): Message => ({
  id: makeId(),
  chat,
  parent,
  role: "user",
  content,
  at: Date.now(),
  ...(pictures.length > 0 ? { pictures } : {}),
  ...(files.length > 0 ? { files } : {}),
});

export interface ToolResult {
  readonly name: string;
  readonly id?: string;
  readonly content: string;
}

/** Each result follows the previous one. */
export function resultsOf(chat: string, first: string, results: readonly ToolResult[]): Message[] {
  let parent = first;
  return results.map(({ name, id: call, content }): Message => {
    const id = makeId();
    const about = { toolName: name, at: Date.now(), ...(call === undefined ? {} : { toolCallId: call }) };
    const message: Message = { id, chat, parent, role: "tool", content, ...about };
    parent = id;
    return message;
  });
}

/** @param place index among several simultaneous answers, to keep them in order */
export function startOf(chat: Chat, { parent, goOnWith, model, place: where }: Answering, place = 0): Message {
  const by = { model: model ?? chat.model, place: where ?? chat.place, state: "running" } as const;
  if (goOnWith) return { ...withoutEnd(goOnWith), ...by };
  const at = Date.now();
  return { id: makeId(at + place), chat: chat.id, parent, role: "assistant", content: "", at, ...by };
}

function withTool(call: ToolCall, offered: readonly OfferedTool[]): ToolCall {
  const found = offered.find(({ definition }) => definition.function.name === call.name);
  return found ? { ...call, tool: { server: found.server, name: found.tool } } : call;
}

interface Writing {
  readonly chat: Chat;
  /** The messages before the answer, and the answer itself if it is continued. */
  readonly path: readonly Message[];
  readonly live: Live;
  readonly signal: AbortSignal;
}

/** Has a model write an answer. Returns the message in its final state, also after a failure. */
export async function writeAnswer(parts: ChatParts, { chat, path, live, signal }: Writing): Promise<Message> {
  const { model = chat.model, place = chat.place } = live.message();
  const endWatch = place === "server" ? parts.watchLoad(live.wait) : () => {};
  const words = parts.words();
  let end: Partial<Message>;
  try {
    const question = { model, messages: wireMessages(chat.system, path), options: chat.options };
    const offered = await parts.offer(chat.servers ?? [], signal);
    const tools = [...toolsOf(chat.tools), ...offered.map(({ definition }) => definition)];
    const more = { ...(chat.think === undefined ? {} : { think: chat.think }), tools };
    for await (const event of parts.answerers[place]({ ...question, ...more }, signal)) {
      live.take(event.kind === "call" ? { kind: "call", call: withTool(event.call, offered) } : event);
    }
    end = endOf(words, live);
  } catch (error) {
    end = signal.aborted ? { state: "stopped" } : { state: "failed", error: failureText(words, error, live) };
  } finally {
    endWatch();
  }
  return { ...withoutEnd(live.message()), ...end };
}
