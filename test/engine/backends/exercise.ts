/** All operations of a session, once: the results are one list of numbers to compare. */
import type { LoadOptions, Session, StateRows } from "../../../src/engine/program/backend.ts";
import { CTX_LEN, TOKENS } from "../architectures/models.ts";

export const options: LoadOptions = { ctxLen: CTX_LEN, slots: 3, precise: true, threads: 1, cacheDir: undefined };

/** Prefill, decode of several sequences at once, all kinds of wanted rows, states, a shift and a copy. */
export async function exercise(session: Session): Promise<Float32Array> {
  const rows = (slot: number, start: number, end: number) => ({ slot, start, tokens: TOKENS.subarray(start, end) });
  const got: number[] = [];
  const run = async (batch: Parameters<Session["run"]>[0]): Promise<void> =>
    void got.push(...(await session.run(batch)));
  await run([{ ...rows(1, 0, 12), logits: "all" }]);
  await run([{ ...rows(0, 0, 7), logits: "none" }]);
  await run([
    { ...rows(0, 7, 8), logits: "last" },
    { ...rows(1, 12, 13), logits: "last" },
    { ...rows(2, 0, 1), logits: "none" },
  ]);
  const states: StateRows[] = [
    { ...rows(2, 1, 6), states: "all" },
    { ...rows(0, 8, 12), states: "first" },
  ];
  got.push(...(await session.states(states)));
  session.shift(1, { keep: 2, discard: 5, length: 13 });
  await run([{ ...rows(1, 8, 9), logits: "last" }]);
  await session.copy({ from: 1, to: 2, length: 6 });
  await run([
    { ...rows(2, 6, 9), logits: "all" },
    { ...rows(1, 9, 10), logits: "last" },
  ]);
  return Float32Array.from(got);
}

/** An encoder's runs: several whole texts together, and one alone. */
export async function encode(session: Session): Promise<Float32Array> {
  const text = (slot: number, end: number, states: StateRows["states"]): StateRows => {
    return { slot, start: 0, tokens: TOKENS.subarray(slot, end), states };
  };
  const together = (await session.states([text(0, 9, "all"), text(1, 5, "first"), text(2, 12, "last")])).slice();
  return Float32Array.from([...together, ...(await session.states([text(0, 4, "all")]))]);
}
