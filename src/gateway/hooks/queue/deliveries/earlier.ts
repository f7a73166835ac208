/**
 * Answers to earlier requests, by the keys of equal requests: the idempotency key, and the sender's own id of the
 * delivery. An expired key no longer counts.
 */
import { execute, queryEach, parallel, type Transaction } from "../../../database/store.ts";
import type { AcceptRequest } from "./request.ts";
import { laneOf } from "./lane.ts";

/** A delivery that is stored, or will be in this transaction. */
export interface Earlier {
  readonly id: string;
  readonly bodySha256: string;
  /** JSON of a `HookResponse`. */
  readonly response: string;
  readonly keysUntil: number;
}

export interface Found extends Earlier {
  readonly byProvider: boolean;
}

type Column = "idempotency_key" | "provider_delivery_id";

const COLUMNS = 'id, body_sha256 AS "bodySha256", response, keys_until AS "keysUntil"';

const BY_KEY = `SELECT ${COLUMNS} FROM deliveries
  WHERE auth_kind = $1 AND auth_id = $2 AND path = $3 AND idempotency_key = $4`;
const BY_ID = `SELECT ${COLUMNS} FROM deliveries WHERE lane = $1 AND provider_delivery_id = $2`;

/** Reads the known answers for the keys of these requests. */
export function* findEarlier(requests: readonly AcceptRequest[]): Transaction<EarlierAnswers> {
  const { keys, ids } = keysOf(requests);
  const [byKey, byId] = yield* parallel(queryEach<Earlier>(BY_KEY, keys), queryEach<Earlier>(BY_ID, ids));
  return new EarlierAnswers(
    new Map([...keys.entries()].flatMap(([i, key]) => (byKey[i] ? [[nameOf(key), byKey[i]]] : []))),
    new Map([...ids.entries()].flatMap(([i, id]) => (byId[i] ? [[nameOf(id), byId[i]]] : []))),
  );
}

type Key = readonly string[];

const keysOf = (requests: readonly AcceptRequest[]): { keys: Key[]; ids: Key[] } => ({
  keys: requests.flatMap((request) => idempotencyKeyOf(request) ?? []),
  ids: requests.flatMap((request) => providerIdOf(request) ?? []),
});

const idempotencyKeyOf = ({ auth, path, idempotencyKey }: AcceptRequest): [Key] | undefined =>
  idempotencyKey === undefined ? undefined : [[auth.kind, auth.id, path, idempotencyKey]];

const providerIdOf = (request: AcceptRequest): [Key] | undefined =>
  request.providerDeliveryId === undefined ? undefined : [[laneOf(request), request.providerDeliveryId]];

const nameOf = (key: Key): string => JSON.stringify(key);

export class EarlierAnswers {
  readonly #byKey: Map<string, Earlier>;
  readonly #byId: Map<string, Earlier>;
  readonly #forgotten: { readonly column: Column; readonly id: string }[] = [];

  constructor(byKey: Map<string, Earlier>, byId: Map<string, Earlier>) {
    this.#byKey = byKey;
    this.#byId = byId;
  }

  /** The answer to an earlier equal request. */
  find(request: AcceptRequest): Found | undefined {
    const [key, id] = [idempotencyKeyOf(request)?.[0], providerIdOf(request)?.[0]];
    const byKey = key && this.#current(this.#byKey, { key, column: "idempotency_key", now: request.now });
    const byId = id && this.#current(this.#byId, { key: id, column: "provider_delivery_id", now: request.now });
    if (byKey) return { ...byKey, byProvider: false };
    return byId && { ...byId, byProvider: true };
  }

  /** Makes this the answer to later equal requests. */
  add(request: AcceptRequest, earlier: Earlier): void {
    const [key, id] = [idempotencyKeyOf(request)?.[0], providerIdOf(request)?.[0]];
    if (key) this.#byKey.set(nameOf(key), earlier);
    if (id) this.#byId.set(nameOf(id), earlier);
  }

  /** True if a delivery of this transaction gave up a key to a later one. */
  hasForgotten(column: Column, id: string): boolean {
    return this.#forgotten.some((gone) => gone.column === column && gone.id === id);
  }

  /** Removes expired keys from stored deliveries. */
  *forget(): Transaction<void> {
    for (const { column, id } of this.#forgotten) {
      yield* execute(`UPDATE deliveries SET ${column} = NULL WHERE id = $1`, id);
    }
  }

  #current(among: Map<string, Earlier>, at: { key: Key; column: Column; now: number }): Earlier | undefined {
    const name = nameOf(at.key);
    const found = among.get(name);
    if (!found || found.keysUntil > at.now) return found;
    among.delete(name);
    this.#forgotten.push({ column: at.column, id: found.id });
    return undefined;
  }
}
