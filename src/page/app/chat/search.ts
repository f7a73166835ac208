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

/** Titles first, then messages, newest first. Texts that have each word, but not the whole, follow at the end. */
export async function findChats(
  parts: { db: Pick<ChatDatabase, "scan">; chats: readonly Chat[] },
  words: string,
): Promise<Found[]> {
  const wanted = words.trim().toLowerCase();
  if (wanted === "") return [];
  const match = makeMatch(wanted);
  const [whole, others]: [Found[], Found[]] = [[], []];
  for (const chat of parts.chats) {
    const at = match(chat.title);
    if (at) (at.isWhole ? whole : others).push({ chat, around: chat.title, from: at.from, to: at.to });
  }
  const byId = new Map(parts.chats.map((chat) => [chat.id, chat]));
  await parts.db.scan(({ id, chat: chatId, content }) => {
    const chat = byId.get(chatId);
    const at = chat && match(content);
    if (at) (at.isWhole ? whole : others).push({ chat, message: id, ...around(content, at.from, at.to - at.from) });
    if (others.length > FOUND_MAX) others.length = FOUND_MAX;
    return whole.length >= FOUND_MAX;
  });
  return [...whole, ...others].slice(0, FOUND_MAX);
}

interface Match {
  readonly from: number;
  readonly to: number;
  /** False: the text has each word, and the place is that of the first one. */
  readonly isWhole: boolean;
}

function makeMatch(wanted: string): (text: string) => Match | undefined {
  const words = wanted.split(/\s+/);
  const first = words[0]!;
  return (text) => {
    const lower = text.toLowerCase();
    const at = lower.indexOf(wanted);
    if (at >= 0) return { from: at, to: at + wanted.length, isWhole: true };
    if (!words.every((word) => lower.includes(word))) return undefined;
    const from = lower.indexOf(first);
    return { from, to: from + first.length, isWhole: false };
  };
}

function around(text: string, at: number, length: number): { around: string; from: number; to: number } {
  const start = Math.max(0, at - AROUND_CHARS);
  const before = (start > 0 ? "…" : "") + text.slice(start, at).replace(/\s+/g, " ");
  const match = text.slice(at, at + length).replace(/\s/g, " ");
  const end = Math.min(text.length, at + length + AROUND_CHARS);
  const after = text.slice(at + length, end).replace(/\s+/g, " ") + (end < text.length ? "…" : "");
  return { around: before + match + after, from: before.length, to: before.length + match.length };
}
