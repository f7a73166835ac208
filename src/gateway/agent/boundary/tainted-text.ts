/**
 * Text that remembers its author: an operator's words are trusted, text from outside is not. It stays in parts until a
 * prompt is made of it, so that only the outside parts are put behind the safety boundary.
 */

export interface Part {
  /** `operator`: written in the configuration; `external`: from a request's body, headers or query. */
  readonly from: "operator" | "external";
  readonly text: string;
}

export type TaintedText = readonly Part[];

export const external = (text: string): TaintedText => [{ from: "external", text }];
export const operator = (text: string): TaintedText => [{ from: "operator", text }];

/** All parts as one text, without their origin; not for text that a model reads. */
export const plain = (tainted: TaintedText): string => tainted.map((part) => part.text).join("");
