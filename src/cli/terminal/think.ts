/** `--think`, whose value follows `=` or is one of the levels: any other next word belongs to the question. */

export const THINK_VALUES: ReadonlySet<string> = new Set(["true", "false", "low", "medium", "high", "max"]);

/** Gives a `--think` without a value an explicit one, because the parser would use the first word of the question. */
export function withThinkValue(words: readonly string[]): string[] {
  const isBare = (word: string, i: number): boolean => word === "--think" && !THINK_VALUES.has(words[i + 1] ?? "");
  const end = words.indexOf("--"); // no options follow it
  return words.map((word, i) => ((end < 0 || i < end) && isBare(word, i) ? "--think=true" : word));
}
