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

/** A run for each action: that of an equal item where there was one, else a new one, remembered until then. */
export function runsOfItems(
  db: Database,
  actions: readonly HookAction[],
  { lane, now, until }: { lane: string; now: number; until: number },
): ItemRun[] {
  const find = db.query<{ id: string }, [string, string, number]>(
    "SELECT run_id AS id FROM items WHERE lane = ? AND item_id = ? AND until > ?",
  );
  const remember = db.query("INSERT OR REPLACE INTO items (lane, item_id, run_id, until) VALUES (?, ?, ?, ?)");
  return actions.map((action) => {
    const { itemId } = action;
    const earlier = itemId === undefined ? null : find.get(lane, itemId, now);
    if (earlier) return { id: earlier.id, action, isNew: false };
    const id = Bun.randomUUIDv7();
    if (itemId !== undefined) remember.run(lane, itemId, id, until);
    return { id, action, isNew: true };
  });
}

/** Returns how many went. */
export const forgetItems = (db: Database, { now, most }: { now: number; most: number }): number =>
  db
    .query(
      "DELETE FROM items WHERE (lane, item_id) IN (SELECT lane, item_id FROM items WHERE until <= ? LIMIT ?) RETURNING 1",
    )
    .all(now, most).length;
