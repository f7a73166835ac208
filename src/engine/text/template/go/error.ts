/**
 * Errors of Go templates, with line and column (both from 1) of the place in the source.
 */
import { AppError, type Code } from "../../../../base/index.ts";

/** `template:3:14: unexpected "}}" in operand`. */
export function templateError(source: string, at: number, message: string, code: Code = "bad_request"): AppError {
  return new AppError(code, `template:${position(source, at)}: ${message}`);
}

/** `line:column` of an offset. */
function position(source: string, at: number): string {
  const before = source.slice(0, at);
  const line = before.split("\n").length;
  return `${line}:${at - before.lastIndexOf("\n")}`;
}
