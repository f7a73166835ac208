/** The lock that serialises the writes of all processes. */

/** First of the lock's two keys; the second is the schema's. */
const WRITE_LOCK = 7_205_102;

/** An expression that takes the lock until the end of the transaction. */
export const writeLockOf = (schema: string): string =>
  `pg_advisory_xact_lock(${WRITE_LOCK}, ${Bun.hash.crc32(schema) | 0})`;
