/** `--think`, whose value stands behind `=` or is one of the levels: what else follows is the question. */

export const THINK_VALUES: ReadonlySet<string> = new Set(["true", "false", "low", "medium", "high", "max"]);

/**
 * The words of a command line, in which a `--think` without a value of its own has one: the parser would take the first
 * word of the question for it.
 */
export function withThinkValue(words: readonly string[]): string[] {
  const isBare = (word: string, i: number): boolean => word === "--think" && !THINK_VALUES.has(words[i + 1] ?? "");
  const end = words.indexOf("--"); // behind it are no options
  return words.map((word, i) => ((end < 0 || i < end) && isBare(word, i) ? "--think=true" : word));
}
