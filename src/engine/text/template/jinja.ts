/**
 * Jinja chat templates: `parseJinja(source)` and `.render(context)`. Tokenizer and parser are @huggingface/jinja's, the
 * evaluator is ours (jinja/eval.ts says why).
 */
import { AppError } from "../../../base/index.ts";
import { evaluate } from "./jinja/eval.ts";
import { makeGlobals } from "./jinja/globals.ts";
import { parseTemplate } from "./jinja/parse.ts";
import { type Budget, fromJson } from "./jinja/value.ts";

interface JinjaLimits {
  /** Characters of the result, and of any intermediate text; also items of any list. */
  readonly outputLength: number;
  /** Expressions, iterations and parts of printed values; operations on long text count more. */
  readonly steps: number;
}

/** The output exceeds any context window; the steps take about a second. */
const JINJA_LIMITS: JinjaLimits = { outputLength: 32 * 1024 * 1024, steps: 4_000_000 };

/** Characters of text that can be made per step. */
const TEXT_PER_STEP = 64;

export interface JinjaTemplate {
  readonly source: string;
  /**
   * @param context names and JSON values; an undefined name is not defined in the template
   * @param now the result of `strftime_now`
   * @param options.mayShrink lists that the template created may lose items, which jinja2's sandbox forbids
   * @throws AppError `bad_request`: the text of `raise_exception`, or why an expression failed; `too_large`: text
   * beyond the limit; `bad_file`: more steps than the limit
   */
  render(context: Readonly<Record<string, unknown>>, now: Date, options?: { mayShrink?: boolean }): string;
}

/** @throws AppError `bad_request` if the source is not a valid template, `too_large` */
export function parseJinja(source: string, limits: JinjaLimits = JINJA_LIMITS): JinjaTemplate {
  const program = parseTemplate(source);
  return {
    source,
    render(context, now, { mayShrink = false } = {}) {
      const budget = { ...makeBudget(limits), mayShrink };
      const names = makeGlobals(now, budget);
      for (const [name, value] of Object.entries(context)) {
        if (value !== undefined) names.set(name, fromJson(value));
      }
      return evaluate(program, names, budget);
    },
  };
}

function makeBudget({ outputLength, steps }: JinjaLimits): Budget {
  let left = steps;
  const spend = (amount: number): void => {
    left -= amount;
    if (left < 0) throw new AppError("bad_file", `the model's chat template did not finish within ${steps} steps`);
  };
  const check = (length: number): void => {
    if (length <= outputLength) return;
    throw new AppError(
      "too_large",
      `chat template: expected texts and lists of at most ${outputLength}, got ${length}`,
    );
  };
  return {
    spend,
    check,
    make(length) {
      check(length);
      spend(length / TEXT_PER_STEP);
    },
  };
}
