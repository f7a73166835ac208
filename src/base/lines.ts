/** Lines of a body that comes in pieces. */

/** Throws what `tooLong` makes where a line has more than `max` UTF-16 units. Empty lines are left out. */
export async function* linesOf(
  body: AsyncIterable<Uint8Array> | null,
  { max, tooLong }: { max: number; tooLong: () => Error },
): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of body ?? []) {
    const parts = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = parts.pop() ?? "";
    yield* parts.filter((part) => part !== "");
    if (rest.length > max) throw tooLong();
  }
  if (rest !== "") yield rest;
}
