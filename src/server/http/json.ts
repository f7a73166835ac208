/** Reads the JSON text of a request within limits. */
import { AppError, jsonExcess, messageOf, type JsonLimits } from "../../base/index.ts";

/** Limits that no client reaches; a larger body would block the event loop for seconds. */
const LIMITS: JsonLimits = {
  depth: 1000, // schemas nest tens of levels; every walk over a body may recurse this deep
  texts: 100_000, // the longest conversations of agents have some ten thousand
  values: 2_000_000, // a context of a million tokens is an array of a million numbers
};

const WHAT = { depth: "levels", texts: "keys and texts", values: "values" };

/** Throws `bad_request` for text that is not JSON, and `too_large` for one that has too many parts. */
export function parseBody(text: string): unknown {
  const excess = jsonExcess(text, LIMITS);
  if (excess !== undefined) {
    const code = excess === "depth" ? "bad_request" : "too_large";
    throw new AppError(code, `request body: expected at most ${LIMITS[excess]} ${WHAT[excess]}, got more`);
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    const reason = messageOf(error).replace(/^JSON Parse error: | ".*$/gs, ""); // without the quoted word of the body
    throw new AppError("bad_request", `request body: expected JSON: ${reason.slice(0, 200)}`);
  }
}
