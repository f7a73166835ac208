/**
 * Regular expressions that take time in proportion to their input (RE2), so that no body can hang the server: no
 * backreferences and no looking around.
 */
import { RE2JS } from "re2js";
import { AppError, messageOf } from "../../../base/index.ts";

const PATTERN_CHARS_MAX = 512;
/** A megabyte would take a third of a second. */
const INPUT_CHARS_MAX = 65_536;
/** `(a{100}){9}` is short and still becomes a program of thousands of instructions. */
const PROGRAM_MAX = 5000;

/**
 * Whether a pattern is found in a text. Throws `bad_request` for what is no pattern. The function that it returns
 * throws `too_large` for a text that is too long: a part of it would tell nothing of the rest.
 */
export function makeMatcher(pattern: string): (text: string) => boolean {
  if (pattern.length > PATTERN_CHARS_MAX) {
    throw new AppError("bad_request", `a pattern has ${pattern.length} characters, at most ${PATTERN_CHARS_MAX}`);
  }
  const compiled = compile(pattern);
  if (compiled.programSize() > PROGRAM_MAX) throw new AppError("bad_request", `pattern '${pattern}' is too large`);
  return (text) => {
    if (text.length <= INPUT_CHARS_MAX) return compiled.matcher(text).find();
    throw new AppError("too_large", `a text has ${text.length} characters, at most ${INPUT_CHARS_MAX} for a pattern`);
  };
}

function compile(pattern: string): RE2JS {
  try {
    return RE2JS.compile(pattern);
  } catch (error) {
    throw new AppError("bad_request", `pattern '${pattern}': ${messageOf(error)}`, { cause: error });
  }
}
