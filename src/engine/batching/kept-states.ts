/**
 * A session that keeps the final hidden states of its last decode step's rows, the input of a draft layer. If the
 * session does not return states and logits together, a separate program computes logits from them, with the same bits.
 */
import type { Rows, Session, TopKResult, TopKRows } from "../program/backend.ts";
import { assert } from "../../base/index.ts";

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
  /** Undefined if the rows belonged to a prompt. */
  of(slot: number): KeptRows | undefined;
}

/**
 * Logits of states, (rows, dim), each of a decode row. Valid until the next run.
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

interface Keeping {
  /** Computes logits from states; undefined for a session that returns both. */
  readonly head: Session | undefined;
  /** Size of the states. */
  readonly dim: number;
}

const isDecode = ({ tokens, logits, drafted = false }: Rows): boolean =>
  logits !== "none" && (tokens.length === 1 || (drafted && logits === "all"));

/** The rows of the last decode step, by slot. */
class Kept extends Map<number, KeptRows> {
  /** @param states of the rows in order, (rows, dim), which stay unchanged */
  keep(batch: readonly Rows[], states: Float32Array, dim: number): void {
    let at = 0;
    for (const { slot, start, tokens } of batch) {
      const end = at + tokens.length * dim;
      this.set(slot, { start, tokens, states: states.subarray(at, end) });
      at = end;
    }
  }
}

export function keepStates(session: Session, { head, dim }: Keeping): KeptStates {
  const kept = new Kept();
  const { runWithStates } = session;
  return runWithStates
    ? keepReturned(session, { kept, runWithStates, dim })
    : keepComputed(session, { kept, head, dim });
}

function keepReturned(
  session: Session,
  { kept, runWithStates, dim }: { kept: Kept; runWithStates: NonNullable<Session["runWithStates"]>; dim: number },
): KeptStates {
  const { topK } = session;
  const run = async (batch: readonly TopKRows[]): Promise<TopKResult> => {
    for (const { slot } of batch) kept.delete(slot);
    if (!batch.every(isDecode)) return topK ? topK.run(batch) : { logits: await session.run(batch), topK: [] };
    const { states, ...result } = await runWithStates(batch);
    kept.keep(batch, states, dim);
    return result;
  };
  return {
    session: {
      ...session,
      run: async (batch) => (await run(batch)).logits,
      ...(topK && { topK: { limits: topK.limits, run } }),
    },
    of: (slot) => kept.get(slot),
  };
}

function keepComputed(session: Session, { kept, head, dim }: Keeping & { kept: Kept }): KeptStates {
  assert(head, "a session that keeps states without their logits");
  const run: Session["run"] = async (batch) => {
    for (const { slot } of batch) kept.delete(slot);
    if (!batch.every(isDecode)) return session.run(batch);
    const all = await session.states(batch.map(({ logits, ...rows }) => ({ ...rows, states: logits })));
    const states = all.slice(); // the next run reuses the array
    kept.keep(batch, states, dim);
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
