/**
 * Adds rollback to a session whose slots continue only from checkpoints, so that it can verify drafts. Before rows that
 * may be rejected it saves the slot's states. If the next rows begin within them, it restores the slot and evaluates
 * the accepted rows again in the same run, as decode rows, which give the same bits.
 */
import type { TopKResult, TopKRows, Rows, RunWithStates, Session, SlicedRuns, StateRows } from "../program/backend.ts";
import type { Checkpoint, Checkpoints } from "../program/kept-slots.ts";
import { assert } from "../../base/index.ts";

/** Drafted rows, and the slot's state before them. */
interface DraftedRows {
  readonly checkpoint: Checkpoint;
  readonly tokens: Int32Array;
  /** True if the slot's states include them; false after a rollback. */
  readonly stands: boolean;
}

/** The state that a slot would have without its rejected drafts. */
interface Within extends Checkpoint {
  readonly before: DraftedRows;
}

const isWithin = (checkpoint: Checkpoint): checkpoint is Within => "before" in checkpoint;

type AnyRows = Omit<Rows, "logits"> | Omit<StateRows, "states">;

/** Access to the wanted results of a kind of rows. */
interface Kind<T extends AnyRows> {
  readonly wanted: (rows: T) => string;
  /** The rows whose results `run` returns; default: the wanted ones. */
  readonly returned?: (rows: T) => string;
  /** The same rows, but with results for all of them: earlier rows are evaluated again. */
  readonly all: (rows: T) => T;
  readonly dim: number;
  /** @param again rows of each entry that are evaluated again */
  readonly run: (batch: readonly T[], again: readonly number[]) => Promise<Float32Array>;
}

const endOf = ({ checkpoint, tokens }: DraftedRows): number => checkpoint.length + tokens.length;

/** The state of each slot, for rollbacks. */
interface States extends Checkpoints {
  readonly pending: Map<number, DraftedRows>;
  /** By slot, the checkpoint that only `pending` uses: tens of megabytes, which the next one may reuse. */
  readonly own: Map<number, Checkpoint>;
  /** The tokens to evaluate again before rows that begin at `start`; if there are any, the slot is rolled back. */
  rollBack(slot: number, start: number): Int32Array;
}

function makeStates(checkpoints: Checkpoints): States {
  const pending: States["pending"] = new Map();
  const own: States["own"] = new Map();
  return {
    pending,
    own,
    rollBack(slot, start) {
      const before = pending.get(slot);
      pending.delete(slot);
      if (!before || start < before.checkpoint.length || start > endOf(before)) return new Int32Array();
      if (before.stands && start === endOf(before)) return new Int32Array();
      if (before.stands) checkpoints.restore(slot, before.checkpoint);
      return before.tokens.slice(0, start - before.checkpoint.length);
    },
    save(slot, length) {
      const before = pending.get(slot);
      if (!before || (before.stands && length === endOf(before))) return checkpoints.save(slot, length);
      const { checkpoint } = before;
      own.delete(slot); // the checkpoint has two owners from now on
      const tokens = before.tokens.slice(0, length - checkpoint.length);
      const within: Within = { length, bytes: checkpoint.bytes, before: { checkpoint, tokens, stands: false } };
      return within;
    },
    restore(slot, checkpoint) {
      pending.delete(slot);
      if (isWithin(checkpoint)) pending.set(slot, checkpoint.before);
      checkpoints.restore(slot, isWithin(checkpoint) ? checkpoint.before.checkpoint : checkpoint);
    },
    standing(slot, length) {
      const before = pending.get(slot);
      if (!before || (before.stands && length === endOf(before))) return length;
      pending.delete(slot);
      if (before.stands) checkpoints.restore(slot, before.checkpoint);
      return before.checkpoint.length;
    },
  };
}

const isDecode = <T extends AnyRows>(rows: T, { wanted }: Kind<T>): boolean =>
  wanted(rows) !== "none" && (rows.tokens.length === 1 || rows.drafted === true);

/** The rows, preceded by the rows to evaluate again in the same run, and the number of the latter. */
async function withRedone<T extends AnyRows>(
  batch: readonly T[],
  kind: Kind<T>,
  { session, states }: { session: Session; states: States },
): Promise<{ readonly rows: readonly T[]; readonly again: readonly number[] }> {
  const again: number[] = [];
  const rows: T[] = [];
  for (const each of batch) {
    const { slot, start, tokens, adapters } = each;
    const redone = states.rollBack(slot, start);
    const first = start - redone.length;
    const together = redone.length > 0 && isDecode(each, kind);
    if (redone.length > 0 && !together) {
      const chosen = adapters ? { adapters } : {};
      await session.run([{ slot, start: first, tokens: redone, logits: "all", drafted: true, ...chosen }]);
    }
    again.push(together ? redone.length : 0);
    const both = (): Int32Array => Int32Array.of(...redone, ...tokens);
    rows.push(together ? kind.all({ ...each, start: first, tokens: both(), drafted: true }) : each);
  }
  return { rows, again };
}

function makeRun(session: Session, states: States) {
  const { checkpoints } = session;
  assert(checkpoints, "a session that goes on from any length");
  return async <T extends AnyRows>(batch: readonly T[], kind: Kind<T>): Promise<Float32Array> => {
    const { rows, again } = await withRedone(batch, kind, { session, states });
    for (const [i, { slot, start, tokens, drafted }] of rows.entries()) {
      if (!drafted || start === 0 || tokens.length === again[i]! + 1) continue; // the rows must be certain
      const checkpoint = await checkpoints.save(slot, start, states.own.get(slot));
      states.own.set(slot, checkpoint);
      states.pending.set(slot, { checkpoint, tokens, stands: true });
    }
    try {
      return without(await kind.run(rows, again), { rows, again, kind });
    } catch (error) {
      for (const { slot } of rows) {
        const before = states.pending.get(slot);
        if (!before) continue;
        checkpoints.restore(slot, before.checkpoint);
        states.pending.set(slot, { ...before, stands: false });
      }
      throw error;
    }
  };
}

/** @param dims sizes of a row of logits, and of states */
export function withRollback(session: Session, dims: { readonly logits: number; readonly states: number }): Session {
  assert(session.checkpoints, "a session that goes on from any length");
  const states = makeStates(session.checkpoints);
  const run = makeRun(session, states);
  const { slices, topK, runWithStates } = session;
  const forget = (slot: number): void => void states.pending.delete(slot);
  const start: SlicedRuns["start"] = (rows) => {
    forget(rows.slot);
    return slices!.start(rows); // only if the session has slices
  };
  return {
    ...session,
    checkpoints: states,
    ...(topK && {
      topK: { limits: topK.limits, run: (batch) => runTopK(batch, { of: (rows) => topK.run(rows), run, dims }) },
    }),
    ...(runWithStates && { runWithStates: (batch) => runTopK(batch, { of: runWithStates, run, dims }) }),
    ...(slices && { slices: { rowsMax: slices.rowsMax, start } }),
    run: (batch) =>
      run(batch, {
        wanted: ({ logits }) => logits,
        all: (rows) => ({ ...rows, logits: "all" as const }),
        dim: dims.logits,
        run: (rows) => session.run(rows),
      }),
    states: (batch, pause) =>
      run(batch, {
        wanted: (rows) => rows.states,
        all: (rows) => ({ ...rows, states: "all" as const }),
        dim: dims.states,
        run: (rows) => session.states(rows, pause),
      }),
    shift(slot, by) {
      forget(slot);
      session.shift(slot, by);
    },
    copy(which) {
      forget(which.to);
      return session.copy(which);
    },
  };
}

/** A row with a request returns only its candidates, however many rows are evaluated again before it. */
async function runTopK<T extends TopKResult | RunWithStates>(
  batch: readonly TopKRows[],
  {
    of,
    run,
    dims,
  }: {
    of: (rows: readonly TopKRows[]) => Promise<T>;
    run: ReturnType<typeof makeRun>;
    dims: { readonly logits: number; readonly states: number };
  },
): Promise<T> {
  let made: T | undefined;
  const kind: Omit<Kind<TopKRows>, "run"> = {
    wanted: ({ logits }) => logits,
    returned: ({ request, logits }) => (request ? "none" : logits),
    all: (rows) => (rows.request ? rows : { ...rows, logits: "all" as const }),
    dim: dims.logits,
  };
  const logits = await run(batch, {
    ...kind,
    async run(rows, again) {
      made = await of(rows);
      if ("states" in made) {
        const ofStates = { wanted: kind.wanted, dim: dims.states };
        made = { ...made, states: without(made.states, { rows, again, kind: ofStates }) };
      }
      return made.logits;
    },
  });
  return { ...made!, logits }; // the run above made it
}

/** Results without the rows that were evaluated again. */
function without<T extends AnyRows>(
  values: Float32Array,
  {
    rows,
    again,
    kind: { wanted, returned = wanted, dim },
  }: { rows: readonly T[]; again: readonly number[]; kind: Pick<Kind<T>, "wanted" | "returned" | "dim"> },
): Float32Array {
  if (again.every((count) => count === 0)) return values;
  let [from, to] = [0, 0];
  for (const [i, each] of rows.entries()) {
    const count = returned(each) === "all" ? each.tokens.length : returned(each) === "none" ? 0 : 1;
    const left = returned(each) === "all" ? count - again[i]! : count;
    values.copyWithin(to * dim, (from + count - left) * dim, (from + count) * dim);
    [from, to] = [from + count, to + left];
  }
  return values.subarray(0, to * dim);
}
