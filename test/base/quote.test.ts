import { expect, test } from "bun:test";
import { quoteGo } from "../../src/base/quote.ts";

test.each([
  ["plain ü 漢", '"plain ü 漢"'],
  ['a "b" \\', '"a \\"b\\" \\\\"'],
  ["\n\t\x00\x7f", '"\\n\\t\\x00\\x7f"'],
  ["\u200b", '"\\u200b"'],
  ["😀", '"😀"'],
])("%p is quoted as Go's %%q does", (text, quoted) => expect(quoteGo(text)).toBe(quoted));
