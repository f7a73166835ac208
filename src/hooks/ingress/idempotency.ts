/**
 * The key by which a sender marks its own repeats: the same key gets the same answer, and nothing happens twice.
 */
import type { Fields } from "./fields.ts";

const KEY_LENGTH_MAX = 256;

/** From the body; a key that cannot be one is a finding. */
export function idempotencyKeyOf(fields: Fields): string | undefined {
  const value = fields.get("idempotencyKey");
  if (value === undefined) return undefined;
  const key = typeof value === "string" ? usable(value) : undefined;
  if (key === undefined) {
    fields.found("idempotencyKey", `expected 1 to ${KEY_LENGTH_MAX} characters; ignored: repeats are not recognised`);
  }
  return key;
}

export interface HeaderKey {
  readonly key: string | undefined;
  readonly warnings: readonly string[];
}

/** From the header, which comes before the body. */
export function headerKey(headers: Headers): HeaderKey {
  const value = headers.get("idempotency-key");
  if (value === null) return { key: undefined, warnings: [] };
  const key = usable(value);
  const warning = `Idempotency-Key: expected 1 to ${KEY_LENGTH_MAX} characters; ignored: repeats are not recognised`;
  return { key, warnings: key === undefined ? [warning] : [] };
}

function usable(value: string): string | undefined {
  const key = value.trim();
  return key !== "" && key.length <= KEY_LENGTH_MAX ? key : undefined;
}
