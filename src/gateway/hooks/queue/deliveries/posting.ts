/** New runs, and their events that are posted in the transaction that makes them. */
import { AppError } from "../../../../base/index.ts";
import { parallel, savepoint, type Transaction } from "../../../database/store.ts";
import { insertRuns, type NewRun } from "./runs.ts";

/** Work done in the transaction that accepts runs, which saves a second one. */
export interface Posting {
  /** True if `store` completes the run: it is stored as ended. */
  take(run: NewRun): boolean;
  /** Stores the taken runs' events. */
  store(): Transaction<void>;
  /**
   * Called after the commit, with the runs of a request.
   * @param isOver true for a run that was taken and stored
   */
  after(runs: readonly NewRun[], isOver: (run: NewRun) => boolean): void;
}

interface Beside {
  readonly posting: Posting;
  /** Further parts of the transaction. */
  readonly also: () => readonly Transaction<void>[];
  /** True if the transaction yields nothing afterwards. */
  readonly isLast: boolean;
}

/**
 * Stores runs, and the events of those taken. If the events cannot be stored, the runs are, and wait.
 * @param taken is emptied then
 */
export function* storeRuns(runs: readonly NewRun[], taken: Set<NewRun>, beside: Beside): Transaction<void> {
  const { posting, also, isLast } = beside;
  const insert = function* (...more: readonly Transaction<void>[]): Transaction<void> {
    yield* parallel(
      ...also(),
      insertRuns(runs, (run) => taken.has(run)),
      ...more,
    );
  };
  try {
    yield* savepoint(taken.size > 0 ? insert(posting.store()) : insert(), { isLast });
  } catch (error) {
    if (taken.size === 0 || error instanceof AppError) throw error;
    taken.clear();
    yield* savepoint(insert(), { isLast });
  }
}
