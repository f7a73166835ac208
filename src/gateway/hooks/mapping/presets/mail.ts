/**
 * Mail, as a watcher of a mailbox posts it: `{ source, messages: [{ id?, from, subject, snippet, body?, … }] }`, each
 * as `mail/message.ts` makes it. Each message becomes a run in its own conversation; a message with an id is handled
 * once, however often it is sent.
 */
import { AppError, isObject } from "../../../../base/index.ts";
import { shortHash } from "../filters.ts";
import type { View } from "../request.ts";
import { type Fields, fieldsOf } from "./fields.ts";
import { BODY_CHARS_MAX, lines, type Preset, summary } from "./preset.ts";

/** A hundred messages whose bodies the watcher cut at 20,000 bytes, in JSON's longest spelling. */
const REQUEST_BYTES_MAX = 100 * (3 * BODY_CHARS_MAX + 8192);
const ID_CHARS_MAX = 128;

export const mail: Preset = {
  mapping: {
    match: { path: "mail" },
    name: "Mail",
    forEach: "messages",
    itemId: "{{ item.id }}",
    maxBodyBytes: REQUEST_BYTES_MAX,
  },
  deliveryIdAt: [],
  describe: (view) => {
    const message = messageOf(view);
    const [snippet, body] = [message.long("snippet"), message.long("body", BODY_CHARS_MAX)];
    const text = lines(
      ["From", message.text("from")],
      ["To", message.text("to")],
      ["Cc", message.text("cc")],
      ["Reply to", message.text("replyTo")],
      ["Date", message.text("date")],
      ["Mailing list", message.text("listId")],
      ["Sent by a program", message.text("autoSubmitted")],
      ["Subject", message.text("subject")],
      body.replace(/\s+/g, " ").startsWith(snippet.replace(/…$/, "")) ? "" : snippet,
      body,
      attachmentsIn(message),
    );
    if (text === "") throw new AppError("bad_request", `messages[${view.index}]: expected from, subject or snippet`);
    return summary("A mail came in. Tell who wants what, and whether an answer is due.", text);
  },
  sessionKey: (view) => `hook:mail:${idOf(view)}`,
};

/** Maximum characters of all attached texts together. */
const ATTACHED_CHARS_MAX = BODY_CHARS_MAX;
/** Outlook packs attachments into one part that only Outlook reads. */
const PACKED = "application/ms-tnef";

/** Lines for the attachments, then the texts among them. */
function attachmentsIn(message: Fields): string {
  const texts: string[] = [];
  let room = ATTACHED_CHARS_MAX;
  const list = message.list("attachments", (each) => {
    const [name, type] = [each.text("name"), each.text("type")];
    const text = room > 0 ? each.long("text", room) : "";
    room -= text.length;
    if (text !== "") texts.push(`--- text of ${name}:\n${text}`);
    const size = sizeText(Number(each.text("size") || Number.NaN), each.has("isCut"));
    const notes = [
      type,
      size,
      each.has("isInline") ? "an image within the text" : "",
      type === PACKED ? "attachments packed by Outlook, which are not read" : "",
    ];
    return `${name} (${notes.filter((note) => note !== "").join(", ")})`;
  });
  const further = message.text("furtherAttachments");
  return lines(list === "" ? "" : `Attachments:\n${list}`, further === "" ? "" : `- and ${further} more`, ...texts);
}

function sizeText(bytes: number, isCut: boolean): string {
  if (!(bytes >= 0)) return "";
  const [count, unit] =
    bytes < 1000 ? [bytes, bytes === 1 ? "byte" : "bytes"] : bytes < 1e6 ? [bytes / 1e3, "kB"] : [bytes / 1e6, "MB"];
  return `${isCut ? "more than " : ""}${Number(count.toFixed(1))} ${unit}`;
}

function messageOf({ item, index }: View) {
  if (isObject(item)) return fieldsOf(item);
  throw new AppError("bad_request", `messages[${index}]: expected an object`);
}

/** The message's id, or a digest if its sender gave none. */
function idOf(view: View): string {
  const message = messageOf(view);
  const id = message.text("id");
  if (id !== "" && id.length <= ID_CHARS_MAX && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(id)) return id;
  return shortHash(JSON.stringify([id, ...["from", "subject", "snippet"].map((key) => message.long(key))]));
}
