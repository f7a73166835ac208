/** Grammars that a request gives for its whole answer: GBNF, a regular expression, or a list of texts. */
import { AppError } from "../../../base/index.ts";
import { gbnfRules } from "./gbnf.ts";
import type { OwnGrammar } from "./grammar.ts";
import { literal } from "./schema/char-set.ts";
import { patternGrammar } from "./schema/regex.ts";

export type AnswerGrammar =
  | { readonly kind: "gbnf"; readonly text: string }
  /** The whole answer matches it. */
  | { readonly kind: "regex"; readonly pattern: string }
  /** The answer is one of these. */
  | { readonly kind: "choice"; readonly texts: readonly string[] };

/** Characters of all texts of a choice. */
const CHOICE_CHARS_MAX = 2 ** 16;
/** Positions that a regular expression may count; see `budget.ts`. */
const COUNTED_MAX = 2 ** 16;

/** Throws `bad_request`. */
export function answerGrammar(given: AnswerGrammar): OwnGrammar {
  switch (given.kind) {
    case "gbnf":
      return { text: gbnfRules(given.text), closes: false };
    case "regex":
      return { text: `root ::= ${regexGrammar(given.pattern)}\n`, closes: false };
    case "choice": {
      const { texts } = given;
      const chars = texts.reduce((sum, { length }) => sum + length, 0);
      if (texts.length === 0 || texts.includes(""))
        throw new AppError("bad_request", "choice: expected texts, got none");
      if (chars > CHOICE_CHARS_MAX) {
        throw new AppError("bad_request", `choice: expected at most ${CHOICE_CHARS_MAX} characters, got ${chars}`);
      }
      return { text: `root ::= ${texts.map(literal).join(" | ")}\n`, closes: false };
    }
    default:
      return given satisfies never;
  }
}

function regexGrammar(pattern: string): string {
  const inner = pattern.replace(/^\^/, "").replace(/(?<=(?:^|[^\\])(?:\\\\)*)\$$/, "");
  const budget = { units: COUNTED_MAX };
  const wrap = (text: string): string => `^(?:${text})$`;
  let grammar: string;
  try {
    grammar = patternGrammar(wrap(inner), { where: "regex", budget, spelling: { excluded: [] } });
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const reason = error.message.split("': ").at(-1)!; // a split has a part
    throw new AppError(error.code, `regex: '${pattern.slice(0, 80)}': ${reason}`, { cause: error });
  }
  if (budget.units > 0) return grammar;
  throw new AppError("bad_request", `regex: expected counts of at most ${COUNTED_MAX} characters in all`);
}
