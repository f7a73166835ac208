/**
 * Items of lists that were acted on: a sender whose requests overlap, as watchers of mailboxes do, gets the run that an
 * item already has. All functions belong inside a transaction.
 */
import type { Database } from "../../base/database.ts";
import type { HookAction } from "../action.ts";

export const ITEMS = `
  CREATE TABLE items (
    lane TEXT NOT NULL,
    item_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    until INTEGER NOT NULL,          -- when it is forgotten
    PRIMARY KEY (lane, item_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX items_age ON items (until);
`;

export interface ItemRun {
  readonly id: string;
  readonly action: HookAction;
  /** False: the item has this run from earlier on. */
  readonly isNew: boolean;
}

/** A run for each action: that of an equal item where there was one, else a new one. */
export function runsOfItems(
  db: Database,
  actions: readonly HookAction[],
  { lane, now }: { lane: string; now: number },
): ItemRun[] {
  const find = db.query<{ id: string }, [string, string, number]>(
    "SELECT run_id AS id FROM items WHERE lane = ? AND item_id = ? AND until > ?",
  );
  const fresh = new Map<string, string>(); // by item of this request
  return actions.map((action) => {
    const { itemId } = action;
    const earlier = itemId === undefined ? undefined : (fresh.get(itemId) ?? find.get(lane, itemId, now)?.id);
    if (earlier !== undefined) return { id: earlier, action, isNew: false };
    const id = Bun.randomUUIDv7();
    if (itemId !== undefined) fresh.set(itemId, id);
    return { id, action, isNew: true };
  });
}

/** From now on equal items get these runs. */
export function rememberItems(
  db: Database,
  runs: readonly ItemRun[],
  { lane, until }: { lane: string; until: number },
): void {
  const remember = db.query(
    `INSERT INTO items (lane, item_id, run_id, until) VALUES (?, ?, ?, ?)
     ON CONFLICT (lane, item_id) DO UPDATE SET run_id = excluded.run_id, until = excluded.until`,
  );
  for (const { id, action, isNew } of runs) {
    if (isNew && action.itemId !== undefined) remember.run(lane, action.itemId, id, until);
  }
}

/** Returns how many went. */
export const forgetItems = (db: Database, { now, most }: { now: number; most: number }): number =>
  db
    .query(
      "DELETE FROM items WHERE (lane, item_id) IN (SELECT lane, item_id FROM items WHERE until <= ? LIMIT ?) RETURNING 1",
    )
    .all(now, most).length;
