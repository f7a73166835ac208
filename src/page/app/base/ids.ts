/** Ids for the page's records: unique, and sorted by creation time. */

/** Pages not served over HTTPS lack `crypto.randomUUID`. */
export function makeId(nowMs: number = Date.now()): string {
  const bytes = crypto.getRandomValues(new Uint8Array(10));
  const random = Array.from(bytes, (byte) => (byte % 36).toString(36)).join("");
  return nowMs.toString(36).padStart(9, "0") + random;
}
