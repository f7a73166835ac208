/** The header `Retry-After`. */

/** Whole seconds, at least one. */
export const retryAfter = (ms: number): Record<string, string> => ({
  "retry-after": String(Math.max(1, Math.ceil(ms / 1000))),
});

/**
 * Milliseconds from now that the header names, in seconds or as a date (RFC 9110, 10.2.3); undefined: it has no valid
 * value.
 */
export function parseRetryAfter(header: string | null | undefined): number | undefined {
  if (!header) return undefined;
  const seconds = Number(header);
  const ms = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, Math.ceil(ms));
}
