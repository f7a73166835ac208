/** Grammars of requests: the texts that they accept, and where errors are. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { answerGrammar, type AnswerGrammar } from "../../../../src/engine/text/sampling/answer-grammar.ts";
import { makeGrammarCompiler, type GrammarCompiler } from "../../../../src/engine/text/sampling/grammar.ts";

const tokens = [
  ...Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)),
  "\n",
  "\t",
  "é",
  "中",
  "ぁ",
  "<end>",
];
const END = tokens.length - 1;
const vocabulary = { tokens, kind: "raw", prependSpace: false, vocabSize: tokens.length, stopIds: [END] } as const;

let compiler: GrammarCompiler;
beforeAll(() => void (compiler = makeGrammarCompiler(vocabulary)));
afterAll(() => compiler.dispose());

/** Returns whether a whole text is an answer of the grammar. */
async function accepts(given: AnswerGrammar, text: string): Promise<boolean> {
  const matcher = await compiler.begin(answerGrammar(given), text);
  const mask = await matcher?.mask();
  matcher?.dispose();
  return mask !== undefined && ((mask[END >> 5]! >>> (END & 31)) & 1) === 1;
}

const gbnf = (text: string): AnswerGrammar => ({ kind: "gbnf", text });
const JSON_GRAMMAR = String.raw`root ::= object
value ::= object | array | string | number | ("true" | "false" | "null") ws

object ::= # rules may begin in the next line
  "{" ws (
    string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9]{1,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
`;

describe("GBNF", () => {
  test.each<[grammar: string, yes: string[], no: string[]]>([
    [
      JSON_GRAMMAR,
      ["{}", '{"a": [1, -2.5e3, "x\\n\\u00e9", {"é": null}]}', "{\n}"],
      ['{"a"}', "[1]", '{"a": 01}', "{}x"],
    ],
    ['root ::= a-b+ .\na-b ::= "x" | [é中]\n | "yy"', ["xé", "xyyz", "yyyyx"], ["x", "q", "zz"]],
    ['root ::= [^a-c\\]] {2} "\\t"?', ["]x".replace("]", "d"), "中é\t"], ["ad", "d]", "d"]],
    ["root ::= [ぁ-ゖ]+", ["ぁぁ"], ["é", "a"]],
    ['root ::= ("a" | ) ("b"){0,2} "c"{0}', ["", "a", "abb", "b"], ["abbb", "c"]],
    ['# first\nroot ::= root-2 root_2 # last\nroot-2 ::= "-"\nroot_2 ::= "_"', ["-_"], ["__", "--"]],
    ['root ::= "\\x41\\u00e9\\U00004e2d\\\\\\""', ['Aé中\\"'], ["A"]],
    ['root ::= "a" root | "b"', ["b", "aab"], ["a"]],
  ])("%#", async (grammar, yes, no) => {
    for (const text of yes) expect([text, await accepts(gbnf(grammar), text)]).toEqual([text, true]);
    for (const text of no) expect([text, await accepts(gbnf(grammar), text)]).toEqual([text, false]);
  });

  test.each([
    ['root ::= "a', "line 1, column 12: expected a closing quote, got the end"],
    ['root ::= "a\n"', "line 1, column 12: expected a closing quote, got the end of the line"],
    ['root ::= "x"\nb := "y"', `line 2, column 3: expected '::=', got ':= "y"'`],
    ['root ::= "é" b', "line 1, column 14: expected the name of a rule that the grammar has, got 'b'"],
    ['a ::= "x"', "expected a rule 'root', got none"],
    ['root ::= "a"\nroot ::= "b"', `line 2, column 1: expected one rule 'root', got 'root ::= "b"'`],
    ["root ::= [b-a]", "line 1, column 11: expected a range from the lower character to the higher one, got 'b-a]'"],
    ["root ::= [a", "line 1, column 12: expected ']', got the end"],
    ['root ::= "x" )', "line 1, column 14: expected a line break behind the rule, got ')'"],
    ['root ::= ("a"', "line 1, column 14: expected ')', got the end"],
    ['root ::= "\\q"', String.raw`line 1, column 11: expected an escape: \n \r \t \\ \" \[ \] \x00 \u0000, got '\q"'`],
    ['root ::= "a"{5,2}', "line 1, column 13: expected a count that is not less than the one before it, got '{5,2}'"],
    ['root ::= "a"{3000}', "line 1, column 13: expected counts of at most 2000, got '{3000}'"],
    ["root ::= <think>", "line 1, column 10: expected a literal, a class, a name or a group: single tokens"],
    ["", "expected a rule 'root', got none"],
    [`root ::= ${"(".repeat(100)}`, "line 1, column 74: expected groups nested at most 64 deep"],
  ])("%p is refused", (grammar, message) => {
    expect(() => answerGrammar(gbnf(grammar))).toThrow(`grammar: ${message}`);
  });
});

test("a regular expression matches the whole answer", async () => {
  const regex = (pattern: string): AnswerGrammar => ({ kind: "regex", pattern });
  for (const [pattern, yes, no] of [
    ['\\d{3}-"[a-c]\\\\', '123-"a\\', '123-"a'],
    ["^a|bc$", "bc", "abc"],
    ["\\$+\\$", "$$", "$"],
    [".*中", "é中", "中é"],
  ] as const) {
    expect([pattern, await accepts(regex(pattern), yes), await accepts(regex(pattern), no)]).toEqual([
      pattern,
      true,
      false,
    ]);
  }
  expect(() => answerGrammar(regex("(a"))).toThrow("regex: '(a': unclosed group");
  expect(() => answerGrammar(regex("a{99999}"))).toThrow("regex: expected counts of at most");
});

test("a choice accepts exactly its texts", async () => {
  const choice: AnswerGrammar = { kind: "choice", texts: ["yes", "yes!", 'n"o\\'] };
  const found = await Promise.all(["yes", "yes!", 'n"o\\', "y", "no"].map((text) => accepts(choice, text)));
  expect(found).toEqual([true, true, true, false, false]);
  expect(() => answerGrammar({ kind: "choice", texts: [] })).toThrow("choice: expected texts, got none");
});
