/**
 * Jinja source → tree, by the tokenizer and parser of @huggingface/jinja. Limits come first, because its expressions
 * take quadratic time on runs of spaces. Between tokenizer and parser, tests with arguments (`x is divisibleby(3)`),
 * which its parser does not know, become filters named `is divisibleby`.
 */
import { parse, tokenize } from "@huggingface/jinja";
import { AppError, messageOf } from "../../../../base/index.ts";
import type { Node } from "./ast.ts";

/** The longest known has 30 kB. */
const MAX_TEMPLATE_LENGTH = 1024 * 1024;
/**
 * Maximum length of a run of white space: no template indents by more, and the tokenizer takes quadratic time on it.
 */
const MAX_SPACE_RUN = 500;

type Token = ReturnType<typeof tokenize>[number];

/** @throws AppError `bad_request` or `too_large` */
export function parseTemplate(source: string): Node {
  if (source.length > MAX_TEMPLATE_LENGTH) {
    throw new AppError(
      "too_large",
      `chat template: expected at most ${MAX_TEMPLATE_LENGTH} characters, got ${source.length}`,
    );
  }
  if (new RegExp(`\\s{${MAX_SPACE_RUN + 1}}`).test(source)) {
    throw new AppError("too_large", `chat template: expected at most ${MAX_SPACE_RUN} spaces in a row`);
  }
  try {
    const tokens = tokenize(source.replaceAll("\r\n", "\n"), { trim_blocks: true, lstrip_blocks: true });
    // The parser types its nodes as classes with `type: string`; ast.ts describes the same as a union.
    return parse(testsAsFilters(tokens) as Token[]) as unknown as Node;
  } catch (error) {
    throw new AppError("bad_request", `chat template: ${reasonOf(error)}`, { cause: error });
  }
}

/**
 * The error of a failed parse: the parser reads past the last token if a template ends too early, and overflows the
 * stack if it nests too deep.
 */
function reasonOf(error: unknown): string {
  if (error instanceof TypeError) return "unexpected end, expected an end tag or a closing bracket";
  if (error instanceof RangeError) return "nested too deeply";
  return messageOf(error);
}

/** Words that cannot begin the argument of a test. */
const NO_ARGUMENT: ReadonlySet<string> = new Set(["and", "or", "not", "if", "else", "is", "in", "recursive"]);

/** `x is [not] name(y)` and `x is [not] name y` → `x | is [not] name(y)`. */
function testsAsFilters(tokens: readonly Token[]): Token[] {
  const result: Token[] = [];
  for (let i = 0; i < tokens.length; i++) {
    const isNot = isWord(tokens[i + 1], "not");
    const name = tokens[i + (isNot ? 2 : 1)];
    const after = tokens[i + (isNot ? 3 : 2)];
    const takesArgument =
      isWord(tokens[i], "is") && name?.type === "Identifier" && after !== undefined && beginsArgument(after);
    if (!takesArgument) {
      result.push(tokens[i]!);
      continue;
    }
    result.push({ type: "Pipe", value: "|" }, { type: "Identifier", value: `is ${isNot ? "not " : ""}${name.value}` });
    i += isNot ? 2 : 1;
    if (after.type === "OpenParen") continue;
    result.push({ type: "OpenParen", value: "(" }, after, { type: "CloseParen", value: ")" });
    i++;
  }
  return result;
}

const isWord = (token: Token | undefined, word: string): boolean =>
  token?.type === "Identifier" && token.value === word;

const beginsArgument = ({ type, value }: Token): boolean =>
  type === "OpenParen" ||
  type === "StringLiteral" ||
  type === "NumericLiteral" ||
  (type === "Identifier" && !NO_ARGUMENT.has(value));
