/**
 * Titles of chats: the first line of the first message, or a title by a model. A title that a user wrote is never
 * changed.
 */
import type { Words } from "../words/index.ts";
import type { OpenChat } from "./chat-types.ts";
import { titleOf, type Chat, type Message, type Messages } from "./tree.ts";

const CHARS_MAX = 60;

const namesOf = ({ chat, base }: Words) => ({ picture: chat.pictureTitle, newChat: base.newChat });

/** The title fields to set when a message is the first of its chat. */
export function titleFields(words: Words, { chat, messages }: OpenChat, message: Message): Partial<Chat> {
  if (message.parent !== null || !isAutomatic(words, chat.peek(), messages.peek())) return {};
  return { title: titleOf(message, namesOf(words)), titled: "line" };
}

/** An older page did not store the title's author: then the title is automatic if it equals the first line. */
function isAutomatic(words: Words, { title, titled }: Chat, messages: Messages): boolean {
  if (titled !== undefined) return titled !== "person";
  return [...messages.values()].some(
    ({ parent, ...rest }) => parent === null && titleOf(rest, namesOf(words)) === title,
  );
}

/** Parses `8.2B`, the API's format; undefined for any other text. */
export function parametersOf(size: string | undefined): number | undefined {
  const [, count, unit] = /^\s*([\d.]+)\s*([KMBT])\s*$/i.exec(size ?? "") ?? [];
  if (count === undefined || unit === undefined) return undefined;
  return Number(count) * { K: 1e3, M: 1e6, B: 1e9, T: 1e12 }[unit.toUpperCase() as "K" | "M" | "B" | "T"];
}

/** Extracts the title from a model's answer; `""` if it has no title. */
export function cleanTitle(said: string): string {
  const text = said.replace(/<think>[^]*?(<\/think>|$)/g, "").trim();
  const bare = withoutSigns(withoutSigns(text.split("\n")[0] ?? "").replace(/^(title|titel|titre|título)\s*:/i, ""));
  return bare.length <= CHARS_MAX ? bare : `${bare.slice(0, CHARS_MAX - 3).replace(/\s+\S*$/, "")}…`;
}

/** Without Markdown markers, quotes and full stop. */
const withoutSigns = (line: string): string =>
  line.replace(/^[\s#*_"'`“”„«»‘’]+/, "").replace(/[\s*_"'`“”„«»‘’.。]+$/, "");
