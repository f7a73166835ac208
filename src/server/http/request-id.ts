/**
 * The id of a request: it is in the log line and in a header of the response, so that a client's report can be matched
 * with the log. Each API has its own name for the header; the native API has no such header.
 */
import { isAnthropic, isV1 } from "./errors.ts";
import { makeId } from "./random-id.ts";

export const makeRequestId = (): string => makeId("req");

/** The response header that carries the request's id. */
export function idHeaders(request: Request, id: string): Record<string, string> {
  if (!isV1(request)) return {};
  return isAnthropic(request) ? { "request-id": id } : { "x-request-id": id };
}
