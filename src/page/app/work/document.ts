/** Documents as text: the result, and the errors. */

/** Faults of documents. The page has a text for each. */
export const DOCUMENT_FAULTS = ["protected", "noText", "damaged", "unpacked", "unknown"] as const;
export type DocumentFault = (typeof DOCUMENT_FAULTS)[number];

export class DocumentError extends Error {
  constructor(fault: DocumentFault) {
    super(fault);
  }
}

export interface DocumentText {
  readonly text: string;
  /** Number of its parts; absent if they are not counted. */
  readonly parts?: { readonly count: number; readonly kind: "pages" | "slides" | "sheets" };
  /** True if only its beginning was read. */
  readonly isCut: boolean;
}

/** A longer text fits no model. */
export const TEXT_CHARS_MAX = 2_000_000;

/** Collects text up to a limit. */
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

  /** Without trailing blanks, and with at most one blank line in a row. */
  text(): string {
    return this.#pieces
      .join("")
      .replace(/[^\S\n]+(?=\n)/g, "")
      .replace(/\n{3,}/g, "\n\n")
      .trim();
  }
}

/** Files of an archive by path. */
export type Parts = ReadonlyMap<string, string>;

/** Throws if there is no text. */
export function documentText(gather: (text: Gathered) => void, parts: DocumentText["parts"]): DocumentText {
  const gathered = new Gathered();
  gather(gathered);
  const text = gathered.text();
  if (!/\S/.test(text)) throw new DocumentError("noText");
  return { text, isCut: gathered.isFull, ...(parts ? { parts } : {}) };
}
