/**
 * The tags and texts of XML as a flat sequence. Custom entities are not expanded, so that none can grow; nothing is
 * fetched, and nesting costs no memory.
 */

export interface XmlPiece {
  readonly kind: "open" | "close" | "text";
  /** Without its prefix; blank for a text. */
  readonly name: string;
  /** A text, or the source of a tag's attributes. */
  readonly text: string;
}

export function* xmlPieces(xml: string): Generator<XmlPiece, void, void> {
  for (let at = 0; at < xml.length;) {
    const open = xml.indexOf("<", at);
    const text = xml.slice(at, open < 0 ? undefined : open);
    if (text !== "") yield { kind: "text", name: "", text: decoded(text) };
    if (open < 0) return;
    const [end, piece] = tagAt(xml, open);
    if (piece?.kind === "text") yield piece;
    else if (piece) yield* tagPieces(piece);
    if (end <= open) return; // the document is cut off
    at = end;
  }
}

/** The end of the tag, and its piece; comments, instructions and declarations have no piece. */
function tagAt(xml: string, open: number): [number, XmlPiece | undefined] {
  const after = (mark: string): number => {
    const found = xml.indexOf(mark, open);
    return found < 0 ? -1 : found + mark.length;
  };
  if (xml.startsWith("<!--", open)) return [after("-->"), undefined];
  if (xml.startsWith("<![CDATA[", open)) {
    const end = after("]]>");
    return [end, { kind: "text", name: "", text: end < 0 ? "" : xml.slice(open + 9, end - 3) }];
  }
  if (xml.startsWith("<?", open)) return [after("?>"), undefined];
  if (xml.startsWith("<!", open)) {
    const [bracket, close] = [xml.indexOf("[", open), xml.indexOf(">", open)];
    return [bracket >= 0 && bracket < close ? after("]>") : after(">"), undefined];
  }
  const end = after(">");
  return [end, { kind: "open", name: "", text: end < 0 ? "" : xml.slice(open + 1, end - 1) }];
}

function* tagPieces({ text }: XmlPiece): Generator<XmlPiece, void, void> {
  const [, slash, name = "", attributes = "", empty] = /^(\/?)(?:[\w.-]+:)?([\w.-]+)([\s\S]*?)(\/?)$/.exec(text) ?? [];
  if (name === "") return;
  if (slash !== "/") yield { kind: "open", name, text: attributes };
  if (slash === "/" || empty === "/") yield { kind: "close", name, text: "" };
}

/** An attribute of a tag, by its name without a prefix. */
export const attributeOf = (attributes: string, name: string): string | undefined =>
  new RegExp(`(?:^|[\\s:])${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)')`)
    .exec(attributes)
    ?.slice(1)
    .find((value) => value !== undefined);

const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** Decodes known character references; others stay as they are. */
export const decoded = (text: string): string =>
  text.replace(/&(?:(amp|lt|gt|quot|apos)|#(\d{1,7})|#x([0-9a-f]{1,6}));/gi, (whole, name, decimal, hex) => {
    if (name !== undefined) return ENTITIES[String(name).toLowerCase()] ?? whole;
    const point = decimal === undefined ? Number.parseInt(String(hex), 16) : Number(decimal);
    const isCharacter = point > 0 && point <= 0x10_ff_ff && !(point >= 0xd8_00 && point <= 0xdf_ff);
    return isCharacter ? String.fromCodePoint(point) : whole;
  });
