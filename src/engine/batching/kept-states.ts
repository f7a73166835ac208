/**
 * A session that keeps the final hidden states of its last decode step's rows, the input of a draft layer; a separate
 * program computes logits from them, with the same bits.
 */
import type { Rows, Session } from "../program/backend.ts";

/** The rows of a slot's last run. */
interface KeptRows {
  /** Position of the first. */
  readonly start: number;
  readonly tokens: Int32Array;
  /** (tokens, dim) */
  readonly states: Float32Array;
}

export interface KeptStates {
  readonly session: Session;
  /** Undefined if they belonged to a prompt. */
  of(slot: number): KeptRows | undefined;
}

/**
 * Logits of states, (rows, dim): a row of decode each. Valid until the next run.
 * @param adapters of each row; default: none
 */
export function logitsOf(
  head: Session,
  states: Float32Array,
  dim: number,
  adapters: readonly Rows["adapters"][] = [],
): Promise<Float32Array> {
  const count = states.length / dim;
  return head.run(
    Array.from({ length: count }, (_, row): Rows => {
      const input = states.subarray(row * dim, (row + 1) * dim);
      const chosen = adapters[row] ? { adapters: adapters[row] } : {};
      return { slot: 0, start: 0, tokens: Int32Array.of(0), input, logits: "last", ...chosen };
    }),
  );
}

/** @param dim size of the states */
export function keepStates(session: Session, { head, dim }: { head: Session; dim: number }): KeptStates {
  const kept = new Map<number, KeptRows>();
  const isDecode = ({ tokens, logits, drafted = false }: Rows): boolean =>
    logits !== "none" && (tokens.length === 1 || (drafted && logits === "all"));
  const run: Session["run"] = async (batch) => {
    for (const { slot } of batch) kept.delete(slot);
    if (!batch.every(isDecode)) return session.run(batch);
    const all = await session.states(batch.map(({ logits, ...rows }) => ({ ...rows, states: logits })));
    const states = all.slice(); // the next run reuses the array
    let at = 0;
    for (const { slot, start, tokens } of batch) {
      const end = at + tokens.length * dim;
      kept.set(slot, { start, tokens, states: states.subarray(at, end) });
      at = end;
    }
    const adapters = batch.flatMap((rows) => Array.from(rows.tokens, () => rows.adapters));
    return logitsOf(head, states, dim, adapters);
  };
  return {
    session: {
      ...session,
      run,
      close() {
        head.close();
        session.close();
      },
    },
    of: (slot) => kept.get(slot),
  };
}
