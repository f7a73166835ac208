/** Documents as text: what there is of each, and what may be wrong with one. */

/** What a document is too large for, or is. The page has words for each. */
export const DOCUMENT_FAULTS = ["protected", "noText", "damaged", "unpacked", "unknown"] as const;
export type DocumentFault = (typeof DOCUMENT_FAULTS)[number];

export class DocumentError extends Error {
  constructor(fault: DocumentFault) {
    super(fault);
  }
}

export interface DocumentText {
  readonly text: string;
  /** How many of them it has; absent where they are not counted. */
  readonly parts?: { readonly count: number; readonly kind: "pages" | "slides" | "sheets" };
  /** Only its beginning was taken. */
  readonly isCut: boolean;
}

/** A longer text is no model's to read. */
export const TEXT_CHARS_MAX = 2_000_000;

/** Gathers text up to a limit. */
export class Gathered {
  readonly #pieces: string[] = [];
  #chars = 0;

  get isFull(): boolean {
    return this.#chars >= TEXT_CHARS_MAX;
  }

  add(text: string): void {
    if (this.isFull || text === "") return;
    const taken = text.slice(0, TEXT_CHARS_MAX - this.#chars);
    this.#pieces.push(taken);
    this.#chars += taken.length;
  }

  /** Without blanks at the ends of lines, and with at most one blank line. */
  text(): string {
    return this.#pieces
      .join("")
      .replace(/[^\S\n]+(?=\n)/g, "")
      .replace(/\n{3,}/g, "\n\n")
      .trim();
  }
}

/** Files of an archive by their paths. */
export type Parts = ReadonlyMap<string, string>;

/** Throws where there is no text. */
export function textOf(gather: (text: Gathered) => void, parts: DocumentText["parts"]): DocumentText {
  const gathered = new Gathered();
  gather(gathered);
  const text = gathered.text();
  if (!/\S/.test(text)) throw new DocumentError("noText");
  return { text, isCut: gathered.isFull, ...(parts ? { parts } : {}) };
}
