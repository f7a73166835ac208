/** The prefix, which names the kind of the id, and 24 hex digits. */
export const makeId = (prefix: string): string =>
  `${prefix}_${Buffer.from(crypto.getRandomValues(new Uint8Array(12))).toString("hex")}`;
