/**
 * A mail as the mail preset takes it, made of the first part of its source (RFC 5322, MIME). Everything in it comes
 * from strangers: whatever it holds becomes bounded, well-formed text, and nothing makes it fail.
 */
import { createHash } from "node:crypto";
import PostalMime, { type Address, type Email } from "postal-mime";
import { htmlText } from "./html-text.ts";

const PARTS_DEPTH_MAX = 32;
const FIELD_CHARS_MAX = 998; // a line of RFC 5322
/** Longer Message-IDs are replaced by their digest in session keys. */
const ID_CHARS_MAX = 128;
const SNIPPET_CHARS_MAX = 200;

/** Names are those of the mail mapping's requests. */
export interface MailItem {
  /** The Message-ID; a digest of one that is no usable text, or of the source where there is none. */
  readonly id: string;
  readonly from: string;
  readonly to?: string;
  readonly date?: string;
  readonly subject: string;
  readonly snippet: string;
  readonly body?: string;
}

export interface MailOptions {
  readonly includeBody: boolean;
  /** UTF-8 bytes of the body, at most. */
  readonly maxBytes: number;
  /** Whether the source goes on. */
  readonly isCut: boolean;
}

/** @param source the beginning of a mail's source, or all of it */
export async function parseMail(source: Uint8Array, { includeBody, maxBytes, isCut }: MailOptions): Promise<MailItem> {
  const mail = await parsed(source);
  const found = tidy(mail.text?.trim() ? mail.text : htmlText(mail.html ?? ""));
  const text =
    found === "" && isCut ? "(This mail begins with attachments; the text behind them was not read.)" : found;
  const to = addressList(mail.to ?? []);
  const date = line(mail.date ?? "");
  return {
    id: idOf(mail, source),
    from: addressList(mail.from ? [mail.from] : []) || "(no sender)",
    ...(to === "" ? {} : { to }),
    ...(date === "" ? {} : { date }),
    subject: line(mail.subject ?? "") || "(no subject)",
    snippet: cutChars(text.slice(0, 4 * SNIPPET_CHARS_MAX).replace(/\s+/g, " "), SNIPPET_CHARS_MAX),
    ...(includeBody && text !== "" ? { body: cutBytes(text, maxBytes) } : {}),
  };
}

/** Of a mail whose parts cannot be told apart, the head alone. */
async function parsed(source: Uint8Array): Promise<Email> {
  const limits = { maxNestingDepth: PARTS_DEPTH_MAX, maxHeadersSize: source.length };
  try {
    return await PostalMime.parse(source, limits);
  } catch {
    return PostalMime.parse(`${headOf(source)}\r\n\r\n(The parts of this mail nest too deep to be read.)`);
  }
}

/** Header lines without those that tell of parts, as text of one byte a character. */
function headOf(source: Uint8Array): string {
  const text = Buffer.from(source).toString("latin1");
  const end = /\r?\n\r?\n/.exec(text)?.index ?? text.length;
  const lines = text.slice(0, end).split(/\r?\n(?![ \t])/);
  return lines.filter((each) => /^(from|to|date|subject|message-id):/i.test(each)).join("\r\n");
}

function idOf({ messageId }: Email, source: Uint8Array): string {
  const id = messageId?.trim() ?? "";
  const isThere = /[^<>\s]/.test(id);
  if (isThere && id.length <= ID_CHARS_MAX && /^[\x21-\x7e]+$/.test(id)) return id;
  const digest = createHash("sha256").update(isThere ? id : source);
  return `sha256:${digest.digest("hex")}`;
}

function addressList(addresses: readonly Address[]): string {
  const mailboxes = addresses.flatMap((each) => each.group ?? [each]);
  const texts = mailboxes.slice(0, 20).map(({ name, address }) => {
    const [shown, at] = [line(name), line(address ?? "")];
    return at === "" ? shown : shown === "" ? at : `${shown} <${at}>`;
  });
  return cutChars(texts.filter((text) => text !== "").join(", "), FIELD_CHARS_MAX);
}

/** On one line, without control characters. */
const line = (text: string): string => cutChars(text.replace(/[\p{Cc}\p{Zl}\p{Zp}\s]+/gu, " ").trim(), FIELD_CHARS_MAX);

/** Line breaks as we write them, no other control characters, and no long gaps. */
const tidy = (text: string): string =>
  text
    .replace(/\r\n?/g, "\n")
    .replace(/[^\P{Cc}\n\t]/gu, "")
    .replace(/(?<![^\S\n])[^\S\n]+\n/g, "\n") // from the first blank of a gap on, which may be as long as the mail
    .replace(/\n{3,}/g, "\n\n")
    .toWellFormed()
    .trim();

const cutChars = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, most).toWellFormed().trimEnd()}…` : text.toWellFormed();

/** Whole characters only. */
function cutBytes(text: string, most: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= most) return text;
  const whole = new TextDecoder("utf-8").decode(bytes.subarray(0, most), { stream: true }); // a half character is kept back
  return `${whole.trimEnd()}…`;
}
