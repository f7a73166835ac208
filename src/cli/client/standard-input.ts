/** Standard input of commands that read all of it. */

/** The longest request body that a server takes. */
const BYTES_MAX = 64 * 2 ** 20;

/** Throws once more bytes than a request may have were read: `yes | hearth run` would never end. */
export async function readStandardInput(): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of Bun.stdin.stream()) {
    size += piece.length;
    if (size > BYTES_MAX) throw new Error(`standard input: expected at most ${BYTES_MAX / 2 ** 20} MiB, got more`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
