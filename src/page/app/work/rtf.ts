/** The text of an RTF file: its words, tabs and paragraphs. */
import { Gathered, type DocumentText } from "./document.ts";

/** Groups without text of the document. */
const HIDDEN: ReadonlySet<string> = new Set(
  (
    "fonttbl colortbl stylesheet info pict object themedata colorschememapping datastore latentstyles listtable " +
    "listoverridetable rsidtbl xmlnstbl fldinst header headerl headerr headerf footer footerl footerr footerf generator"
  ).split(" "),
);
const SIGNS: Readonly<Record<string, string>> = {
  par: "\n",
  line: "\n",
  row: "\n",
  tab: "\t",
  cell: "\t",
  emdash: "—",
  endash: "–",
  bullet: "•",
  lquote: "‘",
  rquote: "’",
  ldblquote: "“",
  rdblquote: "”",
};
const PIECE = /\\([a-z]{1,32})(-?\d{1,10})? ?|\\'([0-9a-f]{2})|\\(.)|([{}])|([^\\{}\r\n]+)/gis;

export function rtfText(bytes: Uint8Array): DocumentText {
  const source = new TextDecoder("windows-1252").decode(bytes);
  const text = new Gathered();
  let [depth, hiddenAt, skip] = [0, Number.POSITIVE_INFINITY, 0];
  const say = (said: string): void => text.add(depth < hiddenAt ? said : "");
  for (const [, word, value, hex, sign, brace, plain] of source.matchAll(PIECE)) {
    if (text.isFull) break;
    if (brace === "{") depth++;
    else if (brace === "}") {
      depth--;
      if (depth < hiddenAt) hiddenAt = Number.POSITIVE_INFINITY;
    } else if (sign === "*" || (word !== undefined && HIDDEN.has(word))) hiddenAt = Math.min(hiddenAt, depth);
    else if (word === "u" && value !== undefined) {
      say(String.fromCharCode((Number(value) + 0x1_00_00) % 0x1_00_00));
      skip = 1; // the fallback for programs without Unicode
    } else if (word !== undefined) say(SIGNS[word] ?? "");
    else {
      const said = hex === undefined ? (plain ?? (sign === "~" ? "\u00a0" : (sign ?? ""))) : latin(hex);
      say(said.slice(skip));
      skip = 0;
    }
  }
  return { text: text.text(), isCut: text.isFull };
}

const latin = (hex: string): string => new TextDecoder("windows-1252").decode(Uint8Array.of(Number.parseInt(hex, 16)));
