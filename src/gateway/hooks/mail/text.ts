/** Turns text of mails, which strangers wrote, into bounded and well-formed text. */
import type { Address } from "postal-mime";

const FIELD_CHARS_MAX = 998; // a line of RFC 5322

export function addressList(addresses: readonly Address[]): string {
  const mailboxes = addresses.flatMap((each) => each.group ?? [each]);
  const texts = mailboxes.slice(0, 20).map(({ name, address }) => {
    const [shown, at] = [line(name), line(address ?? "")];
    return at === "" ? shown : shown === "" ? at : `${shown} <${at}>`;
  });
  return cutChars(texts.filter((text) => text !== "").join(", "), FIELD_CHARS_MAX);
}

/** As one line, without control characters. */
export const line = (text: string): string =>
  cutChars(text.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, " ").trim(), FIELD_CHARS_MAX);

/** With uniform line breaks, without other control characters and long gaps. */
export const tidy = (text: string): string =>
  text
    .replace(/\r\n?/g, "\n")
    .replace(/[^\P{Cc}\n\t]/gu, "")
    .replace(/(?<![^\S\n])[^\S\n]+\n/g, "\n") // anchored at the first blank of a gap, which may be as long as the mail
    .replace(/\n{3,}/g, "\n\n")
    .toWellFormed()
    .trim();

export const cutChars = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, most).toWellFormed().trimEnd()}…` : text.toWellFormed();

/** Cuts between characters. */
export function cutBytes(text: string, most: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= most) return text;
  // streaming holds back an incomplete character
  const whole = new TextDecoder("utf-8").decode(bytes.subarray(0, most), { stream: true });
  return `${whole.trimEnd()}…`;
}
