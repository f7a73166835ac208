/** Names for what the page makes: unique, and in the order in which they were made. */

/** Pages that were not served over HTTPS have no `crypto.randomUUID`. */
export function makeId(nowMs: number = Date.now()): string {
  const bytes = crypto.getRandomValues(new Uint8Array(10));
  const random = Array.from(bytes, (byte) => (byte % 36).toString(36)).join("");
  return nowMs.toString(36).padStart(9, "0") + random;
}
