/**
 * Text as a reader sees it, for finding words that someone disguised: compatibility forms, accents, letters of other
 * alphabets that look Latin, brackets that look like angle brackets, and characters that show nothing. The original is
 * kept: every folded character knows where it came from.
 */

/** Look-alikes that no Unicode normalization joins: each line is a Latin letter or bracket and who poses as it. */
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
  /** For each UTF-16 unit of `text`, where its character begins and ends in the original. */
  readonly starts: readonly number[];
  readonly ends: readonly number[];
}

/** Lower case, without accents and invisible characters, look-alikes replaced. */
export function fold(original: string): Folded {
  const starts: number[] = [];
  const ends: number[] = [];
  let text = "";
  let at = 0;
  const known = new Map<string, string>(); // most texts have few different characters
  for (const char of original) {
    const end = at + char.length;
    let folded = known.get(char);
    if (folded === undefined) known.set(char, (folded = foldChar(char)));
    text += folded;
    for (let i = 0; i < folded.length; i++) {
      starts.push(at);
      ends.push(end);
    }
    at = end;
  }
  return { text, starts, ends };
}

function foldChar(char: string): string {
  if (char <= "\x7f") return char.toLowerCase();
  const bare = char.normalize("NFKD").replace(/[\p{M}\p{Default_Ignorable_Code_Point}\p{Cf}]/gu, "");
  return Array.from(bare, (piece) => LATIN.get(piece) ?? LATIN.get(piece.toLowerCase()) ?? piece.toLowerCase()).join(
    "",
  );
}
