/** What somebody pushes, as a generator that ends or throws as the work does. */
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
