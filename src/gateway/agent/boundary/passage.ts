/**
 * Text that remembers its author: an operator's words are trusted, text from outside is not. It stays in parts until a
 * prompt is made of it, so that only the outside parts are put behind the safety boundary.
 */

export interface Part {
  /** `operator`: written in the configuration; `external`: from a request's body, headers or query. */
  readonly from: "operator" | "external";
  readonly text: string;
}

export type Passage = readonly Part[];

export const external = (text: string): Passage => [{ from: "external", text }];
export const operator = (text: string): Passage => [{ from: "operator", text }];

/** All parts as one text, without their origin; not for text that a model reads. */
export const plain = (passage: Passage): string => passage.map((part) => part.text).join("");
