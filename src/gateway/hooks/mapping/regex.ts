/**
 * Regular expressions in linear time (RE2), so that no body can hang the server: without backreferences and lookaround.
 */
import { RE2JS } from "re2js";
import { AppError, messageOf } from "../../../base/index.ts";

const PATTERN_CHARS_MAX = 512;
/** Maximum length of a searched text: a megabyte would take a third of a second. */
const INPUT_CHARS_MAX = 65_536;
/** `(a{100}){9}` is short and still compiles to thousands of instructions. */
const PROGRAM_MAX = 5000;

/**
 * A function that searches a text for a pattern. Throws `bad_request` for an invalid pattern. The function throws
 * `too_large` for a long text: searching a part of it would miss matches.
 */
export function makeMatcher(pattern: string): (text: string) => boolean {
  if (pattern.length > PATTERN_CHARS_MAX) {
    throw new AppError(
      "bad_request",
      `pattern: expected at most ${PATTERN_CHARS_MAX} characters, got ${pattern.length}`,
    );
  }
  const compiled = compile(pattern);
  if (compiled.programSize() > PROGRAM_MAX)
    throw new AppError("bad_request", `pattern '${pattern}': expected a shorter one: its program is too large`);
  return (text) => {
    if (text.length <= INPUT_CHARS_MAX) return compiled.matcher(text).find();
    throw new AppError(
      "too_large",
      `pattern: expected a text of at most ${INPUT_CHARS_MAX} characters, got ${text.length}`,
    );
  };
}

function compile(pattern: string): RE2JS {
  try {
    return RE2JS.compile(pattern);
  } catch (error) {
    throw new AppError("bad_request", `pattern '${pattern}': ${messageOf(error)}`, { cause: error });
  }
}
