/**
 * Folds text to the form a reader sees, to find disguised words: compatibility forms, accents, letters of other
 * alphabets that look Latin, brackets that look like angle brackets, invisible characters. Every folded character has
 * its position in the original.
 */

/** Look-alikes that no Unicode normalization joins: a Latin letter or bracket, and the characters that resemble it. */
const LOOK_ALIKES: Readonly<Record<string, string>> = {
  a: "аɑαᴀꭺᎪ",
  b: "ЬвʙΒВᏴ",
  c: "сϲᴄꮯᏟС",
  d: "ԁᴅꭰᎠ",
  e: "еєэεᴇҽꭼᎬЕΕ",
  g: "ɡԍɢ",
  h: "һʜНΗᎻ",
  i: "іıɩιɪІΙᎥ",
  j: "јᴊЈ",
  k: "кκᴋКΚ",
  l: "ӏʟⅼ∣ꮮᏞ",
  m: "мᴍМΜⅿᎷ",
  n: "пոɴΝ",
  o: "оοσᴏ๐օОΟ૦",
  p: "рρᴘРΡᏢ",
  r: "гᴦʀꮁᏒ",
  s: "ѕꜱʂЅᏚꮪ",
  t: "тτᴛТΤꭲᎢ",
  u: "υսᴜцՍ",
  v: "ѵνᴠⅴ",
  w: "ѡԝᴡ",
  x: "хχⅹХΧ",
  y: "уγʏУΥ",
  z: "ᴢΖ",
  "<": "‹〈⟨❮❬❰˂ᐸ≺⋖⧼﹤⟪《«⦉⦑⧏◁◂◄◀",
  ">": "›〉⟩❯❭❱˃ᐳ≻⋗⧽﹥⟫》»⦊⦒⧐▷▸►▶",
};

const LATIN = new Map(
  Object.entries(LOOK_ALIKES).flatMap(([latin, others]) => [...others].map((other) => [other, latin] as const)),
);

export interface Folded {
  readonly text: string;
  /**
   * Maps ranges of `text` to ranges of the original.
   * @param ranges UTF-16 units of `text`: in order, disjoint, not empty; each result spans from the first unit's
   * character to the end of the last unit's
   */
  origins(ranges: readonly Range[]): Range[];
}

export interface Range {
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
}

/** Lower case, without accents and invisible characters, with look-alikes replaced. */
export function fold(original: string): Folded {
  const known = new Map<string, string>();
  let text = "";
  for (const char of original) text += foldKnown(char, known);
  return { text, origins: (ranges) => originsIn(original, ranges, known) };
}

/** Walks the text a second time; few texts need it. */
function originsIn(original: string, ranges: readonly Range[], known: Map<string, string>): Range[] {
  const origins: Range[] = [];
  let start = 0;
  let at = 0;
  let folded = 0;
  for (const char of original) {
    const next = folded + foldKnown(char, known).length;
    const end = at + char.length;
    for (let range = ranges[origins.length]; range && range.start < next; range = ranges[origins.length]) {
      if (folded <= range.start) start = at;
      if (range.end > next) break;
      origins.push({ start, end });
    }
    if (origins.length === ranges.length) break;
    folded = next;
    at = end;
  }
  return origins;
}

/** Each character is looked up once. */
function foldKnown(char: string, known: Map<string, string>): string {
  let folded = known.get(char);
  if (folded === undefined) {
    folded = foldChar(char);
    known.set(char, folded);
  }
  return folded;
}

function foldChar(char: string): string {
  if (char <= "\x7f") return char.toLowerCase();
  const bare = char.normalize("NFKD").replace(/[\p{M}\p{Default_Ignorable_Code_Point}\p{Cf}]/gu, "");
  return Array.from(bare, (piece) => LATIN.get(piece) ?? LATIN.get(piece.toLowerCase()) ?? piece.toLowerCase()).join(
    "",
  );
}
