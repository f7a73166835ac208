/** The key by which a sender marks its repeats: the same key gets the same answer, and is acted on once. */
import type { Fields } from "./fields.ts";
import { idempotencyKey, KEY_LENGTH_MAX, type wakeFields } from "./requests.ts";

const UNUSABLE = `expected 1 to ${KEY_LENGTH_MAX} characters without U+0000; ignored: repeats are not recognised`;

/** The key from the body; an invalid one is a finding. */
export const idempotencyKeyOf = (fields: Fields<Pick<typeof wakeFields, "idempotencyKey">>): string | undefined =>
  fields.read("idempotencyKey", () => fields.found("idempotencyKey", UNUSABLE));

export interface HeaderKey {
  readonly key: string | undefined;
  readonly warnings: readonly string[];
}

/** The key from the header, which is read before the body. */
export function headerKey(headers: Headers): HeaderKey {
  const value = headers.get("idempotency-key");
  if (value === null) return { key: undefined, warnings: [] };
  const read = idempotencyKey.safeParse(value);
  const key = read.success ? read.data : undefined;
  return { key, warnings: key === undefined ? [`Idempotency-Key: ${UNUSABLE}`] : [] };
}
