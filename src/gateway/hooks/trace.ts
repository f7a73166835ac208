/**
 * W3C Trace Context (https://www.w3.org/TR/trace-context/): `traceparent` lets a sender find its request in the logs of
 * others; `tracestate` accompanies it for tracing tools. Invalid headers count as absent.
 */
import { formatTraceparent, newSpanId, parseTraceparent } from "../../base/tracing.ts";

const MEMBERS_MAX = 32;
/** Longest incoming list: more than 32 members of full length. */
const STATE_READ_MAX = 32 * 1024;
/** Longest outgoing list: the length that every system must be able to carry. */
const STATE_LENGTH_MAX = 512;
/** If a list is too long, members longer than this are dropped first. */
const MEMBER_LENGTH_LONG = 128;
const KEY = /^[a-z0-9][a-z0-9_\-*/@]{0,255}$/; // as in Level 2, which accepts every key of Level 1
const VALUE = /^[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/** A list to pass on: without empty members, and without some if it is too long. */
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
    members.splice(oldest, 1); // -1: drop the oldest
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

/** The headers to store: no state without a trace. */
export function keptTrace({ traceparent, tracestate }: TraceHeaders): Record<string, string> {
  if (!traceparent || !parseTraceparent(traceparent)) return {};
  const state = parseTracestate(tracestate);
  return { traceparent, ...(state === undefined ? {} : { tracestate: state }) };
}

/** Headers for a request that this one causes: a new span of the same trace. */
export function childTrace(headers: TraceHeaders): Record<string, string> {
  const trace = parseTraceparent(headers.traceparent);
  return trace ? { ...keptTrace(headers), traceparent: formatTraceparent({ ...trace, parentId: newSpanId() }) } : {};
}
