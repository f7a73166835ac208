/**
 * Platforms that need an open conversation before a message to a person. Opening one sends nothing, so it may be
 * repeated; opened conversations are remembered.
 */
import type { SendOutcome } from "./channel.ts";

/** The conversation's id, or the reason of the failure. */
export type Opened = { readonly kind: "opened"; readonly id: string } | Exclude<SendOutcome, { kind: "sent" }>;

const REMEMBERED_MAX = 1000;

/** A failure to open may always be retried: no message has left yet. */
export function rememberConversations(
  open: (person: string, signal: AbortSignal) => Promise<Opened>,
): (person: string, signal: AbortSignal) => Promise<Opened> {
  const known = new Map<string, string>();
  return async (person, signal) => {
    const id = known.get(person);
    if (id !== undefined) return { kind: "opened", id };
    const opened = await open(person, signal);
    if (opened.kind === "unknown") return { kind: "retry", reason: opened.reason };
    if (opened.kind !== "opened") return opened;
    const oldest = known.keys().next();
    if (known.size >= REMEMBERED_MAX && !oldest.done) known.delete(oldest.value);
    known.set(person, opened.id);
    return opened;
  };
}

/** Turns the outcome of an opening request into a conversation. */
export function openedBy(outcome: SendOutcome): Opened {
  if (outcome.kind !== "sent") return outcome;
  if (outcome.messageId !== undefined) return { kind: "opened", id: outcome.messageId };
  return { kind: "failed", reason: "the platform opened a conversation without an id" };
}
