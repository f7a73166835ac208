/**
 * Conversations that are longer than the context: which messages a prompt is made of. System messages and the last one
 * always stay; of the others the oldest go, as few as will do.
 */
import { AppError } from "../base/errors.ts";

/** Whether the context has room for a prompt. */
type Fits = (prompt: string, about: { readonly isWhole: boolean }) => Promise<boolean>;

export interface Fitted {
  readonly prompt: string;
  /** Whether messages were left out. */
  readonly truncated: boolean;
}

/**
 * The prompt of as many messages as fit. Where not even the last one does, the prompt of what must stay: the caller
 * finds it too long. A long history takes few renderings, not one per message.
 * @param render throws where a template refuses these messages, as some do that want turns to alternate
 * @param fits a prompt that lacks messages may have to leave more room than a whole one
 */
export async function fitMessages<T extends { readonly role: string }>(
  messages: readonly T[],
  { render, fits }: { render: (messages: readonly T[]) => string; fits: Fits },
): Promise<Fitted> {
  const whole = render(messages);
  if (await fits(whole, { isWhole: true })) return { prompt: whole, truncated: false };
  const droppable = messages.flatMap(({ role }, i) => (role !== "system" && i < messages.length - 1 ? [i] : []));
  if (droppable.length === 0) return { prompt: whole, truncated: false };
  const without = (count: number): string => {
    const dropped = new Set(droppable.slice(0, count));
    return render(messages.filter((_, i) => !dropped.has(i)));
  };
  let low = 1;
  let high = droppable.length;
  let best: string | undefined;
  while (low < high) {
    const middle = (low + high) >> 1;
    const found = firstAccepted(without, { from: middle, to: high });
    if (found && !(await fits(found.prompt, { isWhole: false }))) low = found.count + 1;
    else {
      best = found?.prompt ?? best;
      high = middle;
    }
  }
  return { prompt: best ?? without(droppable.length), truncated: true };
}

/** The first count, `to` excluded, that the template accepts. */
function firstAccepted(
  without: (count: number) => string,
  { from, to }: { from: number; to: number },
): { readonly count: number; readonly prompt: string } | undefined {
  for (let count = from; count < to; count++) {
    try {
      return { count, prompt: without(count) };
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
    }
  }
  return undefined;
}
