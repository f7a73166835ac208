/** Lines of a body that comes in pieces. */

/** Throws what `tooLong` makes where a line has more than `max` UTF-16 units. Empty lines are left out. */
export async function* linesOf(
  body: AsyncIterable<Uint8Array> | null,
  { max, tooLong }: { max: number; tooLong: () => Error },
): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of body ?? []) {
    const [more = "", ...begun] = decoder.decode(bytes, { stream: true }).split("\n");
    rest += more; // not looked at before its end is there: it may come in many pieces
    for (const next of begun) {
      if (rest !== "") yield rest;
      rest = next;
    }
    if (rest.length > max) throw tooLong();
  }
  if (rest !== "") yield rest;
}
