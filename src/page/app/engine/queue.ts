/** Converts work with a callback to a generator, and runs several in sequence. */
import { abortable } from "../../../base/index.ts";

/** Pushed items as a generator, which ends or throws like the work. */
export async function* pushed<T>(work: (push: (item: T) => void) => Promise<void>): AsyncGenerator<T, void, void> {
  const items: T[] = [];
  let wake = (): void => {};
  let end: { readonly error?: unknown } | undefined;
  work((item) => {
    items.push(item);
    wake();
  })
    .then(
      () => (end = {}),
      (error: unknown) => (end = { error }),
    )
    .finally(() => wake());
  for (;;) {
    const next = items.shift();
    if (next !== undefined) yield next;
    else if (end) break;
    else await new Promise<void>((resolve) => (wake = resolve));
  }
  if ("error" in end) throw end.error;
}

/** Runs work after all earlier work; throws if `signal` aborts first. */
export type InTurn = (work: () => Promise<void>, signal: AbortSignal) => Promise<void>;

export function makeQueue(): InTurn {
  let last: Promise<unknown> = Promise.resolve();
  return (work, signal) => {
    const before = last;
    const done = abortable(before, [signal]).then(work);
    last = Promise.allSettled([before, done]);
    return done;
  };
}
