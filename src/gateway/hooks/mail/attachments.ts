/** Attachments of a mail: names, types, sizes, and the content of text files, as far as there is room. */
import PostalMime, { type Attachment, type Email } from "postal-mime";
import { htmlText } from "./html-text.ts";
import { addressList, cutBytes, line, tidy } from "./text.ts";

/** Maximum number of attachments that are named; the rest is only counted. */
const NAMED_MAX = 20;
const NAME_CHARS_MAX = 200;
const TYPE_CHARS_MAX = 100;
/** An attached mail is read, but not the attachments inside it. */
const NESTED_PARTS_MAX = 8;

/** Names are the same as in requests to the mail mapping. */
export interface MailAttachment {
  readonly name: string;
  readonly type: string;
  /** Bytes; for a cut attachment, those received. */
  readonly size: number;
  /** The mail was not read to its end, which lies in this attachment. */
  readonly isCut?: true;
  /** Shown within the text, like a logo. */
  readonly isInline?: true;
  readonly text?: string;
}

export interface MailAttachments {
  readonly attachments?: readonly MailAttachment[];
  readonly furtherAttachments?: number;
}

/**
 * @param limits.textBytes of all texts together
 * @param limits.isCut true if the source was cut off
 */
export async function attachmentsOf(
  { attachments }: Email,
  { textBytes, isCut }: { readonly textBytes: number; readonly isCut: boolean },
): Promise<MailAttachments> {
  if (attachments.length === 0) return {};
  const named: MailAttachment[] = [];
  let room = textBytes;
  for (const [i, each] of attachments.slice(0, NAMED_MAX).entries()) {
    const text = room > 0 ? cutBytes(await textOf(each), room) : "";
    room -= Buffer.byteLength(text);
    named.push({
      name:
        line(each.filename ?? "")
          .slice(0, NAME_CHARS_MAX)
          .toWellFormed() || "(no name)",
      type: line(each.mimeType).slice(0, TYPE_CHARS_MAX).toWellFormed(),
      size: bytesOf(each).length,
      ...(isCut && i === attachments.length - 1 ? { isCut } : {}),
      ...(isInline(each) ? { isInline: true } : {}),
      ...(text === "" ? {} : { text }),
    });
  }
  const further = attachments.length - named.length;
  return { attachments: named, ...(further > 0 ? { furtherAttachments: further } : {}) };
}

/** An image that the HTML shows. */
const isInline = ({ mimeType, contentId, disposition, related }: Attachment): boolean =>
  mimeType.startsWith("image/") && (related === true || (contentId !== undefined && disposition !== "attachment"));

function bytesOf({ content }: Attachment): Uint8Array {
  return typeof content === "string" ? Buffer.from(content) : new Uint8Array(content);
}

type Kind = "text" | "mail";

const TYPES: Readonly<Record<string, Kind>> = {
  "text/plain": "text",
  "text/csv": "text",
  "text/tab-separated-values": "text",
  "text/calendar": "text",
  "text/markdown": "text",
  "text/vcard": "text",
  "application/ics": "text",
  "application/csv": "text",
  "application/json": "text",
  "message/rfc822": "mail",
};

/** Types by file name ending, for attachments declared as plain bytes. */
const ENDINGS: Readonly<Record<string, Kind>> = {
  txt: "text",
  csv: "text",
  tsv: "text",
  ics: "text",
  md: "text",
  log: "text",
  vcf: "text",
  json: "text",
  eml: "mail",
};

function kindOf({ mimeType, filename }: Attachment): Kind | undefined {
  const type = mimeType.toLowerCase();
  if (type !== "application/octet-stream") return Object.hasOwn(TYPES, type) ? TYPES[type] : undefined;
  const ending = /\.(\w{2,4})$/.exec(filename ?? "")?.[1]?.toLowerCase() ?? "";
  return Object.hasOwn(ENDINGS, ending) ? ENDINGS[ending] : undefined;
}

/** "" if the attachment is not a text. */
async function textOf(attachment: Attachment): Promise<string> {
  const kind = kindOf(attachment);
  if (kind === undefined) return "";
  const bytes = bytesOf(attachment);
  return kind === "mail" ? nestedMail(bytes) : tidy(decode(bytes));
}

/** UTF-8, or UTF-16 with a byte order mark, else Latin-1: the library does not expose the declared charset. */
function decode(bytes: Uint8Array): string {
  const [first, second] = bytes;
  if (first === 0xff && second === 0xfe) return new TextDecoder("utf-16le").decode(bytes);
  if (first === 0xfe && second === 0xff) return new TextDecoder("utf-16be").decode(bytes);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}

async function nestedMail(bytes: Uint8Array): Promise<string> {
  const options = { maxNestingDepth: NESTED_PARTS_MAX, maxHeadersSize: bytes.length };
  const mail = await PostalMime.parse(bytes, options).catch(() => undefined);
  if (!mail) return "";
  const head = [
    `From: ${addressList(mail.from ? [mail.from] : [])}`,
    `Subject: ${line(mail.subject ?? "")}`,
    `Date: ${line(mail.date ?? "")}`,
  ].filter((each) => !each.endsWith(": "));
  return `${head.join("\n")}\n\n${tidy(mail.text?.trim() ? mail.text : htmlText(mail.html ?? ""))}`.trim();
}
