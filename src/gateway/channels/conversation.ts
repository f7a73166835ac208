/**
 * Platforms on which a message to a person goes through a conversation that is opened first. Opening is no message: it
 * may be repeated, and what it opened is remembered.
 */
import type { SendOutcome } from "./channel.ts";

/** The conversation's id, or why there is none. */
export type Opened = { readonly kind: "opened"; readonly id: string } | Exclude<SendOutcome, { kind: "sent" }>;

const REMEMBERED_MAX = 1000;

/** Whatever breaks while opening may be tried again: no message has left yet. */
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

/** An outcome that says where a conversation is, as one to send to. */
export function openedBy(outcome: SendOutcome): Opened {
  if (outcome.kind !== "sent") return outcome;
  if (outcome.messageId !== undefined) return { kind: "opened", id: outcome.messageId };
  return { kind: "failed", reason: "the platform opened a conversation without an id" };
}
