/** Lines of a body that arrives in pieces. */

/** Throws the result of `tooLong` for a line of more than `max` UTF-16 units. Skips empty lines. */
export async function* linesOf(
  body: AsyncIterable<Uint8Array> | null,
  { max, tooLong }: { max: number; tooLong: () => Error },
): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of body ?? []) {
    const [more = "", ...begun] = decoder.decode(bytes, { stream: true }).split("\n");
    rest += more; // joined only at the end of the line, which may arrive in many pieces
    for (const next of begun) {
      if (rest !== "") yield rest;
      rest = next;
    }
    if (rest.length > max) throw tooLong();
  }
  if (rest !== "") yield rest;
}
