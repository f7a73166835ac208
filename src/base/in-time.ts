/** Waits with a time limit. */

/**
 * The result of a promise, or that of `late` if the promise takes longer than `ms`; either may throw. Bytes that
 * arrived while the process was stopped or busy are in time: the event loop handles them before `late`.
 */
export async function inTime<T, L>(promise: Promise<T>, { ms, late }: { ms: number; late: () => L }): Promise<T | L> {
  const over = Promise.withResolvers<void>();
  const timer = setTimeout(() => setTimeout(over.resolve), ms);
  try {
    return await Promise.race([promise, over.promise.then(late)]);
  } finally {
    clearTimeout(timer);
  }
}
