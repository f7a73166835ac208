/** A document as text, by its magic bytes. The library for each format is fetched on first use. */
import { DocumentError, type DocumentText } from "./document.ts";

export async function readDocument(
  file: Blob,
  name: string,
  onProgress: (done: number) => void,
): Promise<DocumentText> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const head = new TextDecoder("latin1").decode(bytes.subarray(0, 1024));
  if (head.includes("%PDF-")) return (await import("./pdf.ts")).pdfText(bytes, onProgress);
  if (head.startsWith("PK")) return (await import("./office.ts")).officeText(bytes);
  if (head.startsWith("\u00d0\u00cf\u0011\u00e0")) throw new DocumentError("protected");
  if (head.startsWith("{\\rtf")) return (await import("./rtf.ts")).rtfText(bytes);
  if (/\.eml$/i.test(name)) return (await import("./mail.ts")).mailText(bytes);
  throw new DocumentError("unknown");
}
