/** New runs, and what of them can be done in the transaction that makes them. */
import { AppError } from "../../../../base/index.ts";
import { together, whole, type Script } from "../../../database/store.ts";
import { insertRuns, type NewRun } from "./runs.ts";

/** What can be done in the transaction that accepts runs, so that it costs no second one. */
export interface Posting {
  /** Whether all that a run asks for is done with `store`: it is stored as ended then. */
  take(run: NewRun): boolean;
  /** Stores what was taken, at once. */
  store(): Script<void>;
  /** Call after the commit, with the runs of a request. @param isOver whether it was taken and stored */
  after(runs: readonly NewRun[], isOver: (run: NewRun) => boolean): void;
}

interface Beside {
  readonly posting: Posting;
  /** What else is new. */
  readonly also: () => readonly Script<void>[];
  /** Whether the script asks nothing afterwards. */
  readonly isLast: boolean;
}

/**
 * Stores runs, and what was taken of them. They stand whatever becomes of that: where it cannot be stored, nothing was
 * taken, and they wait.
 * @param taken is empty then
 */
export function* storeRuns(runs: readonly NewRun[], taken: Set<NewRun>, beside: Beside): Script<void> {
  const { posting, also, isLast } = beside;
  const insert = function* (...more: readonly Script<void>[]): Script<void> {
    yield* together(
      ...also(),
      insertRuns(runs, (run) => taken.has(run)),
      ...more,
    );
  };
  try {
    yield* whole(taken.size > 0 ? insert(posting.store()) : insert(), { isLast });
  } catch (error) {
    if (taken.size === 0 || error instanceof AppError) throw error;
    taken.clear();
    yield* whole(insert(), { isLast });
  }
}
