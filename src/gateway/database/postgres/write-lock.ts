/** The lock that makes writes of all processes serial. */

/** First of the lock's two numbers; the other is the schema's. */
const WRITE_LOCK = 7_205_102;

/** An expression that waits for the lock, which then holds until the end of the transaction. */
export const writeLockOf = (schema: string): string =>
  `pg_advisory_xact_lock(${WRITE_LOCK}, ${Bun.hash.crc32(schema) | 0})`;
