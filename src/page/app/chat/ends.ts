/** The end of an answer, as its message stores it. */
import { ServerGone } from "../base/api.ts";
import { reasonOf } from "../base/reason.ts";
import type { Words } from "../words/index.ts";
import type { Live } from "./live.ts";
import type { Message } from "./tree.ts";

export function endOf({ chat }: Words, { reason, stats }: Live): Partial<Message> {
  if (reason === undefined) return { state: "failed", error: chat.noEnd };
  return { ...(stats ? { stats } : {}), ...(reason === "length" ? { state: "length" as const } : {}) };
}

export function withoutEnd(message: Message): Message {
  const { state: _, error: __, stats: ___, ...rest } = message;
  return rest;
}

/** Marks an answer whose tab was closed. */
export const asInterrupted = ({ chat }: Words, message: Message): Message =>
  message.state === "running" ? { ...message, state: "failed", error: chat.interrupted } : message;

/** An answer that was stopped because its chat was deleted. */
export const asStopped = (message: Message): Message =>
  message.state === "running" ? { ...message, state: "stopped" } : message;

/** The reason of a failure; for a lost connection it depends on the text received so far. */
export function failureText(words: Words, error: unknown, live: Pick<Live, "message">): string {
  if (!(error instanceof ServerGone)) return reasonOf(words, error);
  const { content, thinking } = live.message();
  return content === "" && !thinking ? words.chat.unreachable : words.chat.lost;
}

export const notSaved = (words: Words, error: unknown): string =>
  error instanceof DOMException && error.name === "QuotaExceededError" ? words.chat.noRoom : reasonOf(words, error);
