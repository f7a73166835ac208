/**
 * Parses a mail for the mail preset, from the first part of its source (RFC 5322, MIME). All content comes from
 * strangers: it becomes bounded, well-formed text, and no input makes parsing fail.
 */
import { createHash } from "node:crypto";
import PostalMime, { type Email } from "postal-mime";
import { attachmentsOf, type MailAttachments } from "./attachments.ts";
import { htmlText } from "./html-text.ts";
import { addressList, cutBytes, cutChars, line, tidy } from "./text.ts";

const PARTS_DEPTH_MAX = 32;
/** Longer Message-IDs are replaced by their digest in session keys. */
const ID_CHARS_MAX = 128;
const SNIPPET_CHARS_MAX = 200;

/** Names are the same as in requests to the mail mapping. */
export interface MailItem extends MailAttachments {
  /** The Message-ID; its digest if it is unusable, the source's digest if it is absent. */
  readonly id: string;
  readonly from: string;
  readonly to?: string;
  readonly cc?: string;
  /** Set if it differs from the sender. */
  readonly replyTo?: string;
  readonly date?: string;
  /** Id of a mailing list. */
  readonly listId?: string;
  /** Set if a program wrote it: `auto-replied`, `auto-generated` (RFC 3834). */
  readonly autoSubmitted?: string;
  readonly subject: string;
  readonly snippet: string;
  readonly body?: string;
}

export interface MailOptions {
  readonly includeBody: boolean;
  /** Maximum number of UTF-8 bytes of the body and attached texts. */
  readonly maxBytes: number;
  /** True if the source was cut off. */
  readonly isCut: boolean;
}

/** @param source the beginning of a mail's source, or all of it */
export async function parseMail(source: Uint8Array, { includeBody, maxBytes, isCut }: MailOptions): Promise<MailItem> {
  const mail = await parsed(source);
  const found = tidy(mail.text?.trim() ? mail.text : htmlText(mail.html ?? ""));
  const text =
    found === "" && isCut ? "(This mail begins with attachments; the text behind them was not read.)" : found;
  const from = addressList(mail.from ? [mail.from] : []);
  const replyTo = addressList(mail.replyTo ?? []);
  const auto = header(mail, "auto-submitted");
  const body = includeBody ? cutBytes(text, maxBytes) : "";
  const textBytes = includeBody ? maxBytes - Buffer.byteLength(body) : 0;
  const known = {
    to: addressList(mail.to ?? []),
    cc: addressList(mail.cc ?? []),
    replyTo: replyTo === from ? "" : replyTo,
    date: line(mail.date ?? ""),
    listId: header(mail, "list-id"),
    autoSubmitted: /^no\b/i.test(auto) ? "" : auto,
  };
  return {
    id: idOf(mail, source),
    from: from || "(no sender)",
    ...Object.fromEntries(Object.entries(known).filter(([, value]) => value !== "")),
    subject: line(mail.subject ?? "") || "(no subject)",
    snippet: cutChars(text.slice(0, 4 * SNIPPET_CHARS_MAX).replace(/\s+/g, " "), SNIPPET_CHARS_MAX),
    ...(body === "" ? {} : { body }),
    ...(await attachmentsOf(mail, { textBytes, isCut })),
  };
}

const header = ({ headers }: Email, name: string): string => line(headers.find(({ key }) => key === name)?.value ?? "");

/** Falls back to the head alone, for a mail whose parts cannot be parsed. */
async function parsed(source: Uint8Array): Promise<Email> {
  const limits = { maxNestingDepth: PARTS_DEPTH_MAX, maxHeadersSize: source.length };
  try {
    return await PostalMime.parse(source, limits);
  } catch {
    return PostalMime.parse(`${headOf(source)}\r\n\r\n(The parts of this mail nest too deep to be read.)`);
  }
}

/** Header lines without MIME fields, as one-byte characters. */
function headOf(source: Uint8Array): string {
  const text = Buffer.from(source).toString("latin1");
  const end = /\r?\n\r?\n/.exec(text)?.index ?? text.length;
  const lines = text.slice(0, end).split(/\r?\n(?![ \t])/);
  return lines
    .filter((each) => /^(from|to|cc|reply-to|list-id|auto-submitted|date|subject|message-id):/i.test(each))
    .join("\r\n");
}

function idOf({ messageId }: Email, source: Uint8Array): string {
  const id = messageId?.trim() ?? "";
  const isThere = /[^<>\s]/.test(id);
  if (isThere && id.length <= ID_CHARS_MAX && /^[\x21-\x7e]+$/.test(id)) return id;
  const digest = createHash("sha256").update(isThere ? id : source);
  return `sha256:${digest.digest("hex")}`;
}
