/**
 * Items of lists that were acted on: a sender whose requests overlap, as watchers of mailboxes do, gets the run that an
 * item already has.
 */
import { execute, queryOne, type Script } from "../../base/store.ts";
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
export function* runsOfItems(
  actions: readonly HookAction[],
  { lane, now }: { lane: string; now: number },
): Script<ItemRun[]> {
  const fresh = new Map<string, string>(); // by item of this request
  const runs: ItemRun[] = [];
  for (const action of actions) {
    const { itemId } = action;
    const earlier =
      itemId === undefined ? undefined : (fresh.get(itemId) ?? (yield* findItem(itemId, { lane, now }))?.id);
    const id = earlier ?? Bun.randomUUIDv7();
    if (itemId !== undefined) fresh.set(itemId, id);
    runs.push({ id, action, isNew: earlier === undefined });
  }
  return runs;
}

const findItem = (itemId: string, { lane, now }: { lane: string; now: number }): Script<{ id: string } | undefined> =>
  queryOne<{ id: string }>(
    "SELECT run_id AS id FROM items WHERE lane = $1 AND item_id = $2 AND until > $3",
    lane,
    itemId,
    now,
  );

/** From now on equal items get these runs. */
export function* rememberItems(
  runs: readonly ItemRun[],
  { lane, until }: { lane: string; until: number },
): Script<void> {
  for (const { id, action, isNew } of runs) {
    if (!isNew || action.itemId === undefined) continue;
    yield* execute(
      `INSERT INTO items (lane, item_id, run_id, until) VALUES ($1, $2, $3, $4)
       ON CONFLICT (lane, item_id) DO UPDATE SET run_id = excluded.run_id, until = excluded.until`,
      lane,
      action.itemId,
      id,
      until,
    );
  }
}

/** Returns how many went. */
export const forgetItems = ({ now, most }: { now: number; most: number }): Script<number> =>
  execute(
    "DELETE FROM items WHERE (lane, item_id) IN (SELECT lane, item_id FROM items WHERE until <= $1 LIMIT $2)",
    now,
    most,
  );
