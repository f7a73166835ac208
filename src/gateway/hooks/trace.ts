/**
 * W3C Trace Context (https://www.w3.org/TR/trace-context/): by `traceparent` a sender finds its request in the logs of
 * others, `tracestate` goes with it for tools that look after traces. What is no such header is as good as none.
 */
import { formatTraceparent, newSpanId, parseTraceparent } from "../../base/tracing.ts";

/** Members that a list may have. */
const MEMBERS_MAX = 32;
/** Of a list that comes in: more than 32 members of full length. */
const STATE_READ_MAX = 32 * 1024;
/** Of a list that goes on: what everyone must be able to carry. */
const STATE_LENGTH_MAX = 512;
/** Members longer than this are the first to go where a list is too long. */
const MEMBER_LENGTH_LONG = 128;
const KEY = /^[a-z0-9][a-z0-9_\-*/@]{0,255}$/; // as in Level 2, which takes all that Level 1 did
const VALUE = /^[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/** A list that can go on as it is: without empty members, and without some where it is too long. */
export function parseTracestate(text: string | null | undefined): string | undefined {
  if (!text || text.length > STATE_READ_MAX) return undefined;
  const members = text
    .split(",")
    .map((member) => member.replace(/^[ \t]+|(?<![ \t])[ \t]+$/g, ""))
    .filter((member) => member !== "");
  if (members.length > MEMBERS_MAX || !members.every(isMember)) return undefined;
  if (new Set(members.map(keyOf)).size < members.length) return undefined;
  while (members.join(",").length > STATE_LENGTH_MAX) {
    const oldest = members.findLastIndex(({ length }) => length > MEMBER_LENGTH_LONG);
    members.splice(oldest, 1); // -1: the oldest of all
  }
  return members.join(",") || undefined;
}

const keyOf = (member: string): string => member.slice(0, Math.max(0, member.indexOf("=")));
const isMember = (member: string): boolean =>
  KEY.test(keyOf(member)) && VALUE.test(member.slice(member.indexOf("=") + 1));

export interface TraceHeaders {
  readonly traceparent?: string | null | undefined;
  readonly tracestate?: string | null | undefined;
}

/** What of these headers can be kept: no state without a trace. */
export function keptTrace({ traceparent, tracestate }: TraceHeaders): Record<string, string> {
  if (!traceparent || !parseTraceparent(traceparent)) return {};
  const state = parseTracestate(tracestate);
  return { traceparent, ...(state === undefined ? {} : { tracestate: state }) };
}

/** For a request that this one leads to: a span of its own in the same trace. */
export function childTrace(headers: TraceHeaders): Record<string, string> {
  const trace = parseTraceparent(headers.traceparent);
  return trace ? { ...keptTrace(headers), traceparent: formatTraceparent({ ...trace, parentId: newSpanId() }) } : {};
}
