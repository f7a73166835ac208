/** The sheets of an Excel file: a line for each row, tabs between its cells. */
import { documentText, type DocumentText, type Gathered, type Parts } from "./document.ts";
import { attributeOf, decoded, xmlPieces } from "./xml.ts";

/** Missing cells of a row become tabs, up to this column. */
const COLUMNS_MAX = 500;
const TEXTS_MAX = 2_000_000;

export function sheetsOf(parts: Parts): DocumentText {
  const texts = sharedTexts(parts.get("xl/sharedStrings.xml") ?? "");
  const sheets = sheetNames(parts).filter(({ path }) => parts.has(path));
  const gather = (text: Gathered): void => {
    for (const { name, path } of sheets) {
      text.add(`# ${name}\n\n`);
      gatherRows(parts.get(path)!, texts, text);
      text.add("\n\n");
    }
  };
  return documentText(gather, { count: sheets.length, kind: "sheets" });
}

/** In the order of the workbook. */
function sheetNames(parts: Parts): { name: string; path: string }[] {
  const targets = new Map<string, string>();
  for (const { kind, name, text } of xmlPieces(parts.get("xl/_rels/workbook.xml.rels") ?? "")) {
    if (kind === "open" && name === "Relationship") {
      targets.set(attributeOf(text, "Id") ?? "", (attributeOf(text, "Target") ?? "").replace(/^\/?(?:xl\/)?/, "xl/"));
    }
  }
  return [...xmlPieces(parts.get("xl/workbook.xml") ?? "")].flatMap(({ kind, name, text }) =>
    kind === "open" && name === "sheet"
      ? [{ name: decoded(attributeOf(text, "name") ?? ""), path: targets.get(attributeOf(text, "id") ?? "") ?? "" }]
      : [],
  );
}

/** Texts that cells refer to by number; pronunciations are omitted. */
function sharedTexts(xml: string): string[] {
  const texts: string[] = [];
  let [text, isText, isSound] = ["", false, false];
  for (const { kind, name, text: said } of xmlPieces(xml)) {
    if (kind === "text") text += isText && !isSound ? said : "";
    else if (name === "t") isText = kind === "open";
    else if (name === "rPh") isSound = kind === "open";
    else if (name === "si" && kind === "close") {
      if (texts.push(text) >= TEXTS_MAX) return texts;
      text = "";
    }
  }
  return texts;
}

function gatherRows(xml: string, texts: readonly string[], text: Gathered): void {
  let [column, cell, type, isValue] = [0, "", "", false];
  for (const { kind, name, text: said } of xmlPieces(xml)) {
    if (text.isFull) return;
    if (kind === "text") cell += isValue ? said : "";
    else if (name === "v" || name === "t") isValue = kind === "open";
    else if (name === "c" && kind === "open") {
      const at = Math.min(COLUMNS_MAX, columnOf(attributeOf(said, "r")) ?? column);
      text.add("\t".repeat(Math.max(0, at - column)));
      [column, cell, type] = [Math.max(at, column), "", attributeOf(said, "t") ?? ""];
    } else if (name === "c") {
      text.add(type === "s" ? (texts[Number(cell)] ?? "") : cell);
    } else if (name === "row" && kind === "close") {
      text.add("\n");
      column = 0;
    }
  }
}

/** `C5` → 2. */
function columnOf(reference = ""): number | undefined {
  const letters = /^[A-Z]{1,3}/.exec(reference)?.[0];
  if (letters === undefined) return undefined;
  return [...letters].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1;
}
