/** Finds chats by their content. */
import type { ChatDatabase } from "./database.ts";
import type { Chat } from "./tree.ts";

export interface Found {
  readonly chat: Chat;
  /** Absent: the title matched. */
  readonly message?: string;
  /** The text around the match, and the position of the match in it. */
  readonly around: string;
  readonly from: number;
  readonly to: number;
}

const FOUND_MAX = 40;
const AROUND_CHARS = 60;

/** Titles first, then messages, newest first. */
export async function findChats(
  parts: { db: Pick<ChatDatabase, "scan">; chats: readonly Chat[] },
  words: string,
): Promise<Found[]> {
  const wanted = words.trim().toLowerCase();
  if (wanted === "") return [];
  const byTitle = parts.chats.flatMap((chat): Found[] => {
    const from = chat.title.toLowerCase().indexOf(wanted);
    return from < 0 ? [] : [{ chat, around: chat.title, from, to: from + wanted.length }];
  });
  const found = byTitle.slice(0, FOUND_MAX);
  const byId = new Map(parts.chats.map((chat) => [chat.id, chat]));
  await parts.db.scan(({ id, chat: chatId, content }) => {
    const chat = byId.get(chatId);
    const at = content.toLowerCase().indexOf(wanted);
    if (chat && at >= 0) found.push({ chat, message: id, ...around(content, at, wanted.length) });
    return found.length >= FOUND_MAX;
  });
  return found;
}

function around(text: string, at: number, length: number): { around: string; from: number; to: number } {
  const start = Math.max(0, at - AROUND_CHARS);
  const before = (start > 0 ? "…" : "") + text.slice(start, at).replace(/\s+/g, " ");
  const match = text.slice(at, at + length).replace(/\s/g, " ");
  const end = Math.min(text.length, at + length + AROUND_CHARS);
  const after = text.slice(at + length, end).replace(/\s+/g, " ") + (end < text.length ? "…" : "");
  return { around: before + match + after, from: before.length, to: before.length + match.length };
}
