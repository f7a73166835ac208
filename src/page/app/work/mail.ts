/** A mail as text: sender and recipients, the body, and the names of attachments. */
import PostalMime, { type Address } from "postal-mime";
import { Gathered, type DocumentText } from "./document.ts";
import { decoded } from "./xml.ts";

export async function mailText(bytes: Uint8Array): Promise<DocumentText> {
  const { from, to = [], subject, date, text, html, attachments } = await PostalMime.parse(bytes);
  const names = attachments.flatMap(({ filename }) => (filename ? [filename] : []));
  const head = [
    ["Subject", subject],
    ["From", from ? addressText(from) : undefined],
    ["To", to.map(addressText).join(", ")],
    ["Date", date],
    ["Attachments", names.join(", ")],
  ];
  const gathered = new Gathered();
  for (const [name, value] of head) gathered.add(value ? `${name}: ${value}\n` : "");
  gathered.add(`\n${text?.trim() ? text : withoutTags(html ?? "")}`);
  return { text: gathered.text(), isCut: gathered.isFull };
}

const addressText = ({ name, address }: Address): string => (address ? `${name} <${address}>`.trim() : name);

const withoutTags = (html: string): string =>
  decoded(
    html
      .replace(/<(script|style)\b[\s\S]*?(?:<\/\1>|$)/gi, "")
      .replace(/<(?:br|\/p|\/div|\/tr|\/li|\/h\d)\b[^>]*>/gi, "\n")
      .replace(/<[^>]*>/g, ""),
  );
