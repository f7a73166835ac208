/** The text of documents that are archives of XML: Word, PowerPoint, Excel, and OpenDocument. */
import { unzipSync } from "fflate";
import { DocumentError, documentText, type DocumentText, type Gathered, type Parts } from "./document.ts";
import { sheetsOf } from "./sheets.ts";
import { attributeOf, xmlPieces } from "./xml.ts";

/** Maximum number of unpacked bytes of an archive; the rest is ignored. */
const PART_BYTES_MAX = 64e6;
const ALL_BYTES_MAX = 128e6;
const PARTS_MAX = 3000;
const WANTED = new RegExp(
  [
    String.raw`^(?:word/document|docProps/app|content|META-INF/manifest)\.xml$`,
    String.raw`^ppt/slides/slide\d+\.xml$`,
    String.raw`^xl/(?:workbook|sharedStrings|worksheets/[^/]+)\.xml$`,
    String.raw`^xl/_rels/workbook\.xml\.rels$`,
  ].join("|"),
);

export function officeText(bytes: Uint8Array): DocumentText {
  const parts = unpack(bytes);
  if (parts.get("META-INF/manifest.xml")?.includes("encryption-data")) throw new DocumentError("protected");
  const [word, open] = [parts.get("word/document.xml"), parts.get("content.xml")];
  if (word !== undefined) return documentText((text) => gatherWord(word, text), pagesOf(parts));
  if (parts.has("xl/workbook.xml")) return sheetsOf(parts);
  const slides = [...parts].filter(([name]) => name.startsWith("ppt/slides/")).toSorted(byNumber);
  if (slides.length > 0) {
    const gather = (text: Gathered): void => {
      for (const [, xml] of slides) {
        gatherWord(xml, text);
        text.add("\n\n---\n\n");
      }
    };
    return documentText(gather, { count: slides.length, kind: "slides" });
  }
  if (open !== undefined) return documentText((text) => gatherOpen(open, text), undefined);
  throw new DocumentError("unknown");
}

/** Bounded by the sizes in the archive's directory: larger files are cut off there. */
function unpack(bytes: Uint8Array): Parts {
  let [room, count, isTooLarge] = [ALL_BYTES_MAX, 0, false];
  const take = ({ name, originalSize }: { name: string; originalSize: number }): boolean => {
    if (!WANTED.test(name)) return false;
    room -= originalSize;
    if (originalSize > PART_BYTES_MAX || room < 0 || ++count > PARTS_MAX) isTooLarge = true;
    return !isTooLarge;
  };
  const files = attempt(() => unzipSync(bytes, { filter: take }));
  if (isTooLarge) throw new DocumentError("unpacked");
  return new Map(Object.entries(files).map(([name, file]) => [name, new TextDecoder().decode(file)]));
}

function attempt<T>(work: () => T): T {
  try {
    return work();
  } catch {
    throw new DocumentError("damaged");
  }
}

const numberIn = (name: string): number => Number(/(\d+)\.xml$/.exec(name)?.[1] ?? 0);
const byNumber = ([a]: [string, string], [b]: [string, string]): number => numberIn(a) - numberIn(b);

function pagesOf(parts: Parts): DocumentText["parts"] {
  const count = Number(/<Pages>(\d{1,6})<\/Pages>/.exec(parts.get("docProps/app.xml") ?? "")?.[1] ?? 0);
  return count > 0 ? { count, kind: "pages" } : undefined;
}

/** Paragraphs of Word and PowerPoint: text is in `t` elements; cells of a table share one line. */
function gatherWord(xml: string, text: Gathered): void {
  let [isText, tables] = [false, 0];
  for (const { kind, name, text: said } of xmlPieces(xml)) {
    if (text.isFull) return;
    if (kind === "text") text.add(isText ? said : "");
    else if (name === "t") isText = kind === "open";
    else if (name === "tbl") tables += kind === "open" ? 1 : -1;
    else if (name === "pStyle" && kind === "open") text.add(headingMark(attributeOf(said, "val")));
    else if (kind === "open") text.add({ tab: "\t", br: "\n", cr: "\n" }[name] ?? "");
    else if (name === "p") text.add(tables > 0 ? " " : "\n");
    else text.add({ tc: "\t", tr: "\n" }[name] ?? "");
  }
}

const headingMark = (style = ""): string => {
  const level = /^heading ?([1-6])$/i.exec(style)?.[1];
  return level === undefined ? "" : `${"#".repeat(Number(level))} `;
};

/** Paragraphs of OpenDocument: text is in `p` and `h` elements. */
function gatherOpen(xml: string, text: Gathered): void {
  let [depth, tables] = [0, 0];
  for (const { kind, name, text: said } of xmlPieces(xml)) {
    if (text.isFull) return;
    if (kind === "text") text.add(depth > 0 ? said : "");
    else if (name === "table") tables += kind === "open" ? 1 : -1;
    else if (name === "p" || name === "h") {
      depth += kind === "open" ? 1 : -1;
      text.add(kind === "open" ? "" : tables > 0 ? " " : "\n");
    } else if (kind === "open") text.add({ tab: "\t", s: " ", "line-break": "\n" }[name] ?? "");
    else text.add({ "table-cell": "\t", "table-row": "\n", page: "\n\n" }[name] ?? "");
  }
}
