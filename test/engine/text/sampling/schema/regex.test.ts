import { expect, test } from "bun:test";
import fc from "fast-check";
import { AppError } from "../../../../../src/base/errors.ts";
import { FORMATS } from "../../../../../src/engine/text/sampling/schema/formats.ts";
import { schemaGrammar } from "../../../../../src/engine/text/sampling/schema/compile.ts";
import { patternGrammar } from "../../../../../src/engine/text/sampling/schema/regex.ts";
import { makeBudget } from "../../../../../src/engine/text/sampling/schema/budget.ts";
import { acceptorOf } from "./expressions.ts";

const grammarOf = (pattern: string): string => patternGrammar(pattern, { where: "$", budget: makeBudget() });

const PATTERNS = [
  "^abc$",
  "abc",
  "^ab?c*d+$",
  "^(a|b|cd)+$",
  "^[a-c]{2,4}$",
  "^[^a-c]+$",
  "^\\d{3}-\\w+$",
  "^(?:ab|c)(?<name>d)$",
  "b|^c$",
  "^(a|b)$|^c",
  "^a{2}b{1,}?$",
  "^[\\d.-]+$",
  "^\\$\\{a\\}$",
  "^a{,2}$",
  "^[\\]\\\\^-]$",
  "^é+[à-ü]?$",
  "^\\x61\\u0062\\u{63}$",
  "^[a-]b$",
  "^\\S+\\.\\D$",
  "",
];

test("a pattern's grammar accepts the strings that the pattern matches", () => {
  const piece = fc.constantFrom(
    "a",
    "b",
    "c",
    "d",
    "abc",
    "-",
    ".",
    "1",
    "23",
    "é",
    "中",
    "à",
    "$",
    "{",
    "}",
    "a{,2}",
    "]",
    "^",
    " ",
    "_",
  );
  const text = fc.array(piece, { maxLength: 6 }).map((parts) => parts.join(""));
  for (const pattern of PATTERNS) {
    const accepts = acceptorOf(grammarOf(pattern));
    const regex = new RegExp(pattern, /\{,|\\u\{/.test(pattern) ? (pattern.includes("\\u{") ? "u" : "") : "");
    fc.assert(
      fc.property(text, (s) => expect([pattern, s, accepts(s)]).toEqual([pattern, s, regex.test(s)])),
      { seed: 31, numRuns: 300 },
    );
  }
});

test("a small range beyond ASCII is exact, and a whole script accepts any character beyond ASCII", () => {
  const accented = acceptorOf(grammarOf("^[à-ü]$"));
  expect(["é", "中", "a"].map(accented)).toEqual([true, false, false]);
  const script = acceptorOf(grammarOf("^[一-龥]$"));
  expect(["中", "é", "a"].map(script)).toEqual([true, true, false]);
});

test("quotes, backslashes and controls are escaped in a pattern, and excluded from its classes", () => {
  expect(acceptorOf(grammarOf('^"\\\\\\n$'))('\\"\\\\\\n')).toBe(true);
  const dot = acceptorOf(grammarOf("^.$"));
  expect(['"', "\\", "\n", "\t"].some(dot)).toBe(false);
  expect(["a", "é", "中", "😀"].every(dot)).toBe(true);
});

test.each([
  ["(?=a)b", "look-around"],
  ["(?<!a)b", "look-around"],
  ["(a)\\1", "'\\1' is not supported"],
  ["\\bword\\b", "'\\b' is not supported"],
  ["\\p{L}", "'\\p' is not supported"],
  ["(a", "unclosed group"],
  ["a)", "unmatched ')'"],
  ["[a", "unclosed class"],
  ["*a", "nothing to repeat"],
  ["a{3,2}", "counts out of order"],
  ["[b-a]", "range out of order"],
  ["(^a|b)c", "at the ends only"],
  ["(".repeat(40), "nest deeper"],
  ["a".repeat(5000), "at most 4096 characters"],
])("pattern %p is refused by name", (pattern, reason) => {
  expect(() => grammarOf(pattern)).toThrow(AppError);
  expect(() => grammarOf(pattern)).toThrow(reason);
});

test("counts beyond the budget become 'or more'", () => {
  expect(grammarOf("^[a-z]{1,500}$")).toBe("(([a-z])+)");
  expect(grammarOf("^((a{9}){99}){99}$").length).toBeLessThan(200);
});

test.each([
  ["date", ["2024-02-28", "1999-12-31"], ["2024-02-30", "2024-13-01", "24-01-01"]],
  ["date-time", ["2024-01-31T23:59:59Z", "2024-01-31T00:00:00.125Z"], ["2024-01-31", "2024-01-31T24:00:00Z"]],
  ["time", ["12:30:00Z", "01:02:03+05:30"], ["25:00:00Z", "12:30"]],
  ["email", ["a@b.co", "first.last+tag@mail.example.org"], ["@b.co", "a@b", "a b@c.de"]],
  ["uuid", ["123e4567-e89b-12d3-a456-426614174000"], ["123e4567-e89b-02d3-a456-426614174000", "123e4567"]],
  ["ipv4", ["0.0.0.0", "255.249.199.9"], ["256.0.0.1", "1.2.3", "01.2.3.4"]],
  ["uri", ["https://example.org/a/b?c=d", "http://a.bc"], ["example.org", "ftp://a.bc"]],
])("format %s accepts its standard's values and no others", (format, good, bad) => {
  const accepts = acceptorOf(grammarOf(FORMATS[format]!));
  expect(good.filter((text) => !accepts(text))).toEqual([]);
  expect(bad.filter(accepts)).toEqual([]);
});

test("unknown formats do not constrain a string, even if named like properties of Object", () => {
  const plain = schemaGrammar({ type: "string" });
  for (const format of ["constructor", "toString", "__proto__", "valueOf", "hasOwnProperty", "card", ""])
    expect(schemaGrammar({ type: "string", format })).toEqual(plain);
  expect(schemaGrammar({ type: "string", format: "date" })).not.toEqual(plain);
});
