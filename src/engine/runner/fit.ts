/**
 * Conversations that are longer than the context: which messages a prompt is made of. System messages and the last one
 * always stay, and what the user said last where a template wants to see it, however many calls of tools came since; of
 * the others the oldest go, as few as will do.
 */
import { AppError } from "../../base/index.ts";

interface Fitting<T, P> {
  /** Throws where the template refuses these messages, as some do that want turns to alternate. */
  readonly render: (messages: readonly T[]) => P;
  /** Whether the context has room. A prompt that lacks messages may have to leave more room than a whole one. */
  readonly fits: (prompt: P, about: { readonly isWhole: boolean }) => boolean;
}

interface Fitted<P> {
  readonly prompt: P;
  /** Whether messages were left out. */
  readonly wasCut: boolean;
}

/**
 * The prompt of as many messages as fit. Where not even the last one does, the prompt of what must stay: the caller
 * finds it too long. A long history takes few renderings, not one per message.
 */
export function fitMessages<T extends { readonly role: string }, P>(
  messages: readonly T[],
  { render, fits }: Fitting<T, P>,
): Fitted<P> {
  const whole = render(messages);
  if (fits(whole, { isWhole: true })) return { prompt: whole, wasCut: false };
  let droppable = messages.flatMap(({ role }, i) => (role !== "system" && i < messages.length - 1 ? [i] : []));
  const without = (count: number): P => {
    const dropped = new Set(droppable.slice(0, count));
    return render(messages.filter((_, i) => !dropped.has(i)));
  };
  const asked = messages.findLastIndex(({ role }) => role === "user");
  const all = droppable.length;
  const isWanted = droppable.includes(asked) && !firstAccepted(without, { from: all, to: all + 1 });
  if (isWanted) droppable = droppable.filter((i) => i !== asked);
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

/** The first count, `to` excluded, that the template accepts. */
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
