/** Portable UTF-8 encoding and decoding. Unpaired surrogates and invalid UTF-8 become U+FFFD. */

export const utf8Bytes = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);

/** Keeps a byte order mark. */
export const utf8Text = (bytes: Uint8Array): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);

/** Bytes of a text as UTF-8. */
export function utf8Length(text: string): number {
  let length = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0x80) length += unit >= 0x800 ? 2 : 1;
    const isPair = unit >= 0xd800 && unit < 0xdc00 && text.charCodeAt(i + 1) >> 10 === 0xdc00 >> 10;
    if (isPair) i++; // two units, four bytes
  }
  return length;
}
