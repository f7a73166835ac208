/** How an answer ended, as its message keeps it. */
import { ServerGone } from "../base/api.ts";
import type { Live } from "./live.ts";
import type { Message } from "./tree.ts";

export function endOf({ reason, stats }: Live): Partial<Message> {
  if (reason === undefined) return { state: "failed", error: "The answer ended without saying why." };
  return { ...(stats ? { stats } : {}), ...(reason === "length" ? { state: "length" as const } : {}) };
}

export function withoutEnd(message: Message): Message {
  const { state: _, error: __, stats: ___, ...rest } = message;
  return rest;
}

/** An answer that nobody makes any more. */
export const asInterrupted = (message: Message): Message =>
  message.state === "running"
    ? { ...message, state: "failed", error: "The page was closed before this answer was over." }
    : message;

export function explain(error: unknown): string {
  if (error instanceof ServerGone) return `${error.message}. What came before that is kept; go on once it is back.`;
  return error instanceof Error ? error.message : String(error);
}

export const notSaved = (error: unknown): string =>
  error instanceof DOMException && error.name === "QuotaExceededError"
    ? "the browser gives this page no more room. Delete chats, or export them first."
    : String(error);
