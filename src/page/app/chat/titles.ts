/** Titles of chats: the first line of the first message, or what a model wrote. A title that a person wrote stays. */
import type { Words } from "../words/index.ts";
import type { OpenChat } from "./chat-types.ts";
import { titleOf, type Chat, type Message, type Messages } from "./tree.ts";

const CHARS_MAX = 60;

const namesOf = ({ chat }: Words) => ({ picture: chat.pictureTitle, newChat: chat.new });

/** What becomes of the title when a message is the first of its chat. */
export function titleFields(words: Words, { chat, messages }: OpenChat, message: Message): Partial<Chat> {
  if (message.parent !== null || !isAutomatic(words, chat.peek(), messages.peek())) return {};
  return { title: titleOf(message, namesOf(words)), titled: "line" };
}

/** An older page did not say who wrote a title: then it is automatic where it is a first line. */
function isAutomatic(words: Words, { title, titled }: Chat, messages: Messages): boolean {
  if (titled !== undefined) return titled !== "person";
  return [...messages.values()].some(
    ({ parent, ...rest }) => parent === null && titleOf(rest, namesOf(words)) === title,
  );
}

/** `8.2B`, as the API has it; undefined where it says something else. */
export function parametersOf(size: string | undefined): number | undefined {
  const [, count, unit] = /^\s*([\d.]+)\s*([KMBT])\s*$/i.exec(size ?? "") ?? [];
  if (count === undefined || unit === undefined) return undefined;
  return Number(count) * { K: 1e3, M: 1e6, B: 1e9, T: 1e12 }[unit.toUpperCase() as "K" | "M" | "B" | "T"];
}

/** The title in what a model wrote; `""` where there is none. */
export function cleanTitle(said: string): string {
  const text = said.replace(/<think>[^]*?(<\/think>|$)/g, "").trim();
  const bare = withoutSigns(withoutSigns(text.split("\n")[0] ?? "").replace(/^(title|titel|titre|título)\s*:/i, ""));
  return bare.length <= CHARS_MAX ? bare : `${bare.slice(0, CHARS_MAX - 3).replace(/\s+\S*$/, "")}…`;
}

/** Without signs of Markdown, quotes, and a full stop. */
const withoutSigns = (line: string): string =>
  line.replace(/^[\s#*_"'`“”„«»‘’]+/, "").replace(/[\s*_"'`“”„«»‘’.。]+$/, "");
