/** The header that says when to come again. */

/** Whole seconds, at least one. */
export const retryAfter = (ms: number): Record<string, string> => ({
  "retry-after": String(Math.max(1, Math.ceil(ms / 1000))),
});

/** Whole milliseconds from now that a header asks for, seconds, or a date (RFC 9110, 10.2.3); undefined: none. */
export function parseRetryAfter(header: string | null | undefined): number | undefined {
  if (!header) return undefined;
  const seconds = Number(header);
  const ms = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, Math.ceil(ms));
}
