/** A text of at most `charsMax` UTF-16 units: a longer one is cut between characters and ends with an ellipsis. */
export const shortened = (text: string, charsMax: number): string =>
  text.length > charsMax ? `${text.slice(0, charsMax).replace(/[\uD800-\uDBFF]$/, "")}…` : text;
