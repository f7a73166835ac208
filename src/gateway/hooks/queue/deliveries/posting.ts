/** New runs, and their events that are posted in the transaction that makes them. */
import { AppError } from "../../../../base/index.ts";
import { parallel, undoable, type Transaction } from "../../../database/store.ts";
import { insertRuns, type NewRun } from "./runs.ts";

/** Work done in the transaction that accepts runs, which saves a second one. */
export interface Posting {
  /** True if `store` completes the run, which is then stored as ended. */
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
}

/**
 * Stores runs, and the events of those taken. If the events cannot be stored, the runs are, and wait.
 * @param taken is emptied afterwards
 */
export function* storeRuns(runs: readonly NewRun[], taken: Set<NewRun>, beside: Beside): Transaction<void> {
  const { posting, also } = beside;
  const insert = function* (...more: readonly Transaction<void>[]): Transaction<void> {
    yield* parallel(
      ...also(),
      insertRuns(runs, (run) => taken.has(run)),
      ...more,
    );
  };
  if (taken.size > 0) {
    try {
      return yield* undoable(insert(posting.store()));
    } catch (error) {
      if (error instanceof AppError) throw error;
      taken.clear();
    }
  }
  yield* insert();
}
