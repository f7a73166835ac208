/** The text of a PDF, page by page. Scripts, forms and attachments are ignored. */
import { getDocument } from "unpdf/pdfjs";
import { DocumentError, Gathered, type DocumentText } from "./document.ts";

const PAGES_MAX = 3000;

export async function pdfText(bytes: Uint8Array, onProgress: (page: number) => void): Promise<DocumentText> {
  const options = { isEvalSupported: false, disableFontFace: true, useSystemFonts: false, enableXfa: false };
  const task = getDocument({ data: bytes, ...options, verbosity: 0 });
  const pdf = await task.promise.catch((error: unknown) => {
    throw new DocumentError(error instanceof Error && error.name === "PasswordException" ? "protected" : "damaged");
  });
  const text = new Gathered();
  let hasText = false;
  const count = pdf.numPages;
  let number = 1;
  for (; number <= Math.min(count, PAGES_MAX) && !text.isFull; number++) {
    const said = await pageText(pdf, number);
    hasText ||= /\S/.test(said);
    text.add(`[${number}/${count}]\n${said}\n\n`);
    onProgress(number);
  }
  if (!hasText) throw new DocumentError("noText");
  return { text: text.text(), parts: { count, kind: "pages" }, isCut: number <= count || text.isFull };
}

type Pdf = Awaited<ReturnType<typeof getDocument>["promise"]>;

/** A page that cannot be read counts as blank. */
async function pageText(pdf: Pdf, number: number): Promise<string> {
  try {
    const page = await pdf.getPage(number);
    const { items } = await page.getTextContent();
    page.cleanup();
    return items.map((item) => ("str" in item ? item.str + (item.hasEOL ? "\n" : "") : "")).join("");
  } catch {
    return "";
  }
}
