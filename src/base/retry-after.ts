/** The header that says when to come again. */

/** Whole seconds, at least one. */
export const retryAfter = (ms: number): Record<string, string> => ({
  "retry-after": String(Math.max(1, Math.ceil(ms / 1000))),
});
