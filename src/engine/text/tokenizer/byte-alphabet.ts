/**
 * GPT-2's alphabet: one printable character per byte, so that any bytes can be written as text without white space or
 * controls. `bytes_to_unicode` in OpenAI's gpt-2/src/encoder.py.
 */

/** (256) the character that stands for a byte. */
export function byteCharacters(): string[] {
  const printable = (byte: number): boolean =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printable(byte) ? byte : next++));
}

/** The byte for each character. */
export function bytesOfCharacters(): Map<string, number> {
  return new Map(byteCharacters().map((character, byte) => [character, byte]));
}
