/** Grammar expressions without rule names, as regular expressions, to compare the accepted texts with plain code. */

/** The strings that an expression of literals, classes, groups and counts accepts, as one anchored pattern. */
export function acceptorOf(expression: string): (text: string) => boolean {
  let source = "";
  for (const [token, text, set] of expression.matchAll(/"((?:[^"\\]|\\.)*)"|(\[(?:[^\]\\]|\\.)*\])|\s+|[^"\s]/gu)) {
    if (text !== undefined) source += `(?:${text.replaceAll(/[$()*+.?[\]^{|}]/g, "\\$&")})`;
    else if (set !== undefined) source += set.replaceAll("[^", "[^\\u{d800}-\\u{dfff}");
    else source += token.trim();
  }
  const pattern = new RegExp(`^(?:${source.replaceAll(/\\U([0-9a-f]{8})/g, "\\u{$1}")})$`, "u");
  return (json) => pattern.test(json);
}
