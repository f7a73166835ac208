/** The header `traceparent` of W3C Trace Context (https://www.w3.org/TR/trace-context/). */
import { randomBytes } from "node:crypto";

export interface Trace {
  /** 32 hex digits, constant along the trace. */
  readonly traceId: string;
  /** The sender's span: 16 hex digits. */
  readonly parentId: string;
  /** Two hex digits: whether the sender records. */
  readonly flags: string;
}

/** Later versions of the standard may be longer. */
const LENGTH_MAX = 256;

export function parseTraceparent(text: string | null | undefined): Trace | undefined {
  if (!text || text.length > LENGTH_MAX) return undefined;
  const [, version, traceId = "", parentId = "", flags = "", more] =
    /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(text.trim()) ?? [];
  if (version === undefined || version === "ff" || (version === "00" && more !== undefined)) return undefined;
  return /^0+$/.test(traceId) || /^0+$/.test(parentId) ? undefined : { traceId, parentId, flags };
}

/** The header for outgoing requests; of the flags it keeps only whether the trace is recorded. */
export const formatTraceparent = ({ traceId, parentId, flags }: Trace): string =>
  `00-${traceId}-${parentId}-${flags === "01" ? "01" : "00"}`;

export const newSpanId = (): string => randomBytes(8).toString("hex");
