/**
 * Items of lists that were already handled: if requests of a sender overlap, such as a mailbox watcher's, an item gets
 * its existing run.
 */
import { execute, insertAll, queryEach, type Insert, type Transaction } from "../../../database/store.ts";
import type { HookAction } from "../../action.ts";
import type { AcceptRequest } from "./request.ts";
import { laneOf } from "./lane.ts";

export const ITEMS = `
  CREATE TABLE items (
    lane TEXT COLLATE BINARY NOT NULL,
    item_id TEXT COLLATE BINARY NOT NULL,
    run_id TEXT NOT NULL,
    until INTEGER NOT NULL,          -- when it is forgotten
    PRIMARY KEY (lane, item_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX items_age ON items (until);
`;

export interface ItemRun {
  readonly id: string;
  readonly action: HookAction;
  /** False: the item has this run already. */
  readonly isNew: boolean;
}

type ItemRequest = Pick<AcceptRequest, "actions" | "now" | "path" | "mappingId">;

interface KnownItem {
  readonly lane: string;
  readonly itemId: string;
  readonly runId: string;
  readonly until: number;
}

/** Reads the known items of these requests. */
export function* findItems(requests: readonly ItemRequest[]): Transaction<KnownItems> {
  const rows = yield* queryEach<KnownItem>(BY_ITEM, namesIn(requests));
  return new KnownItems(rows.filter((row) => row !== undefined));
}

const BY_ITEM =
  'SELECT lane, item_id AS "itemId", run_id AS "runId", until FROM items WHERE lane = $1 AND item_id = $2';

const namesIn = (requests: readonly ItemRequest[]): (readonly string[])[] =>
  requests.flatMap((request) =>
    request.actions.flatMap(({ itemId }) => (itemId === undefined ? [] : [[laneOf(request), itemId]])),
  );

export class KnownItems {
  readonly #known = new Map<string, KnownItem>();
  readonly #added = new Map<string, KnownItem>();

  constructor(known: readonly KnownItem[]) {
    for (const item of known) this.#known.set(nameOf(item), item);
  }

  /** A run for each action: that of an equal item, else a new one. */
  runsOf(request: ItemRequest): ItemRun[] {
    const lane = laneOf(request);
    const fresh = new Map<string, string>(); // keyed by item of this request
    return request.actions.map((action) => {
      const { itemId } = action;
      if (itemId === undefined) return { id: Bun.randomUUIDv7(), action, isNew: true };
      const known = this.#known.get(nameOf({ lane, itemId }));
      const earlier = fresh.get(itemId) ?? (known && known.until > request.now ? known.runId : undefined);
      const id = earlier ?? Bun.randomUUIDv7();
      fresh.set(itemId, id);
      return { id, action, isNew: earlier === undefined };
    });
  }

  /** Makes these the runs of later equal items. */
  remember(runs: readonly ItemRun[], { lane, until }: { lane: string; until: number }): void {
    for (const { id: runId, action, isNew } of runs) {
      if (!isNew || action.itemId === undefined) continue;
      const item = { lane, itemId: action.itemId, runId, until };
      this.#known.set(nameOf(item), item);
      this.#added.set(nameOf(item), item);
    }
  }

  /** Replaces expired items. */
  store(): Transaction<void> {
    const ending = "ON CONFLICT (lane, item_id) DO UPDATE SET run_id = excluded.run_id, until = excluded.until";
    return insertAll({ ...this.#rows(), ending });
  }

  #rows(): Insert {
    const rows = [...this.#added.values()].map(({ lane, itemId, runId, until }) => [lane, itemId, runId, until]);
    return { table: "items", columns: ["lane", "item_id", "run_id", "until"], rows };
  }
}

const nameOf = ({ lane, itemId }: Pick<KnownItem, "lane" | "itemId">): string => JSON.stringify([lane, itemId]);

/** Returns the number of deleted items. */
export const forgetItems = ({ now, most }: { now: number; most: number }): Transaction<number> =>
  execute(
    "DELETE FROM items WHERE (lane, item_id) IN (SELECT lane, item_id FROM items WHERE until <= $1 LIMIT $2)",
    now,
    most,
  );
