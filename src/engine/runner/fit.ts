/**
 * Fits conversations to the context: chooses the messages of a prompt. System messages and the last message always
 * stay, and so does the user's last message if the template requires one, even if many tool calls follow it; otherwise
 * the oldest messages are dropped, as few as possible. Results of tools are dropped together with their call.
 */
import { AppError } from "../../base/index.ts";

interface Fitting<T, P> {
  /** Throws if the template refuses these messages; some require alternating turns. */
  readonly render: (messages: readonly T[]) => P;
  /** Returns whether a prompt fits. A prompt with dropped messages may have to leave more room than a whole one. */
  readonly fits: (prompt: P, about: { readonly isWhole: boolean }) => boolean;
}

interface Fitted<P> {
  readonly prompt: P;
  /** True if messages were dropped. */
  readonly wasCut: boolean;
}

/**
 * The prompt with as many messages as fit. If even the required ones are too long, returns their prompt, and the caller
 * reports it. A long history takes few renderings, not one per message.
 */
export function fitMessages<T extends { readonly role: string }, P>(
  messages: readonly T[],
  { render, fits }: Fitting<T, P>,
): Fitted<P> {
  const whole = render(messages);
  if (fits(whole, { isWhole: true })) return { prompt: whole, wasCut: false };
  let droppable = partsOf(messages);
  const without = (count: number): P => {
    const dropped = new Set(droppable.slice(0, count).flat());
    return render(messages.filter((_, i) => !dropped.has(i)));
  };
  const asked = messages.findLastIndex(({ role }) => role === "user");
  const all = droppable.length;
  const isWanted = droppable.flat().includes(asked) && !firstAccepted(without, { from: all, to: all + 1 });
  if (isWanted) droppable = droppable.filter((part) => !part.includes(asked));
  if (droppable.length === 0) return { prompt: whole, wasCut: false };
  let low = 1;
  let high = droppable.length;
  let best: P | undefined;
  while (low < high) {
    const middle = (low + high) >> 1;
    const found = firstAccepted(without, { from: middle, to: high });
    if (found && !fits(found.prompt, { isWhole: false })) low = found.count + 1;
    else {
      best = found?.prompt ?? best;
      high = middle;
    }
  }
  return { prompt: best ?? without(droppable.length), wasCut: true };
}

/**
 * The messages that can be dropped, oldest first: a call of tools with its results, any other message alone. If the
 * last message is a result, its call and the results beside it come last, one by one.
 */
function partsOf(messages: readonly { readonly role: string }[]): (readonly number[])[] {
  const last = messages.length - 1;
  const parts: number[][] = [];
  const begin = messages.findLastIndex(({ role }) => role !== "tool");
  for (const [i, { role }] of messages.entries()) {
    if (role === "system" || i === last) continue;
    if (role === "tool" && i < begin && parts.length > 0) parts.at(-1)!.push(i);
    else parts.push([i]);
  }
  return parts;
}

/** The first count below `to` that the template accepts. */
function firstAccepted<P>(
  without: (count: number) => P,
  { from, to }: { from: number; to: number },
): { readonly count: number; readonly prompt: P } | undefined {
  for (let count = from; count < to; count++) {
    try {
      return { count, prompt: without(count) };
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
    }
  }
  return undefined;
}
