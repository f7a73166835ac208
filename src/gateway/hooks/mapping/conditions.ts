/** Conditions on a request, compiled into one function when the configuration is read. */
import { AppError } from "../../../base/index.ts";
import type { Condition, ConditionTest } from "../config.ts";
import { isAlwaysText, parsePath, valueAt } from "./path.ts";
import { makeMatcher } from "./regex.ts";
import type { View } from "./request.ts";

const DEPTH_MAX = 16;

/** Throws `too_large` for a text that is too long to search. */
export type Question = (view: View) => boolean;

/** Throws `bad_request` for an invalid path or pattern, and for conditions that nest too deep. */
export function makeQuestion(condition: Condition, depth = 0): Question {
  if (depth > DEPTH_MAX) throw new AppError("bad_request", `conditions nest deeper than ${DEPTH_MAX}`);
  const inner = (each: Condition): Question => makeQuestion(each, depth + 1);
  if ("all" in condition) {
    const all = condition.all.map(inner);
    return (view) => all.every((asks) => asks(view));
  }
  if ("any" in condition) {
    const any = condition.any.map(inner);
    return (view) => any.some((asks) => asks(view));
  }
  if ("not" in condition) {
    const asks = inner(condition.not);
    return (view) => !asks(view);
  }
  return makeTest(condition);
}

/** Long numbers are text in bodies, see `ingress/payload.ts`. */
const isLong = (wanted: unknown): boolean => typeof wanted === "number" && Math.abs(wanted) > Number.MAX_SAFE_INTEGER;

/** All parts of a test must hold; an empty test checks that there is a value. */
function makeTest({ at, equals, in: among, matches, exists }: ConditionTest): Question {
  const path = parsePath(at);
  const isSame = (value: unknown, wanted: unknown): boolean =>
    value === wanted ||
    (typeof value === "string" &&
      ((isAlwaysText(path) && value === String(wanted)) ||
        (isLong(wanted) && value !== "" && Number(value) === wanted)));
  const asks: ((value: unknown) => boolean)[] = [];
  if (equals !== undefined) asks.push((value) => isSame(value, equals));
  if (among) asks.push((value) => among.some((each) => isSame(value, each)));
  if (matches !== undefined) {
    const matcher = makeMatcher(matches);
    asks.push((value) => ["string", "number", "boolean"].includes(typeof value) && matcher(String(value)));
  }
  if (exists !== undefined || asks.length === 0) {
    asks.push((value) => (value !== undefined && value !== null) === (exists ?? true));
  }
  return (view) => {
    const value = valueAt(view, path);
    return asks.every((ask) => ask(value));
  };
}
