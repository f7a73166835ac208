/**
 * Rows whose attention reads entries of blocks have the same bits in chunks, together with other sequences, and from a
 * checkpoint.
 */
import { describe, expect, test } from "bun:test";
import type { Rows, Session } from "../../../../src/engine/program/backend.ts";
import { compressedProgram } from "../compressed.ts";
import { everyLevel, twoLevels } from "./levels.ts";

const LENGTH = 70;
const tokens = (text: number, start: number, end: number): Int32Array =>
  Int32Array.from({ length: end - start }, (_, i) => (text * 5 + (start + i) * 7) % 37);
const rows = (slot: number, start: number, end: number, logits: Rows["logits"] = "all"): Rows => {
  return { slot, start, tokens: tokens(slot, start, end), logits };
};

describe.each(twoLevels("compressed blocks on the CPU", everyLevel))("$level", ({ backend }) => {
  const withSession = async (threads: number, use: (session: Session) => Promise<void>): Promise<void> => {
    const options = { ctxLen: 96, slots: 3, precise: false, threads, cacheDir: undefined };
    const session = await backend.load(compressedProgram(), options);
    await use(session);
    session.close();
  };

  test.each([1, 3])("chunks beside other sequences have the bits of one run, on %d threads", async (threads) => {
    let whole = new Float32Array();
    await withSession(1, async (session) => void (whole = (await session.run([rows(1, 0, LENGTH)])).slice()));
    await withSession(threads, async (session) => {
      const parts: number[] = [];
      let start = 0;
      for (const end of [2, 5, 8, 33, LENGTH]) {
        parts.push(
          ...(await session.run([rows(0, start, end, "none"), rows(1, start, end), rows(2, start, end, "none")])),
        );
        start = end;
      }
      expect(Float32Array.from(parts)).toEqual(whole);
    });
  });

  test("steps have the same bits beside others and after a restored checkpoint", () =>
    withSession(2, async (session) => {
      const steps = async (slot: number, others: readonly number[]): Promise<Float32Array[]> => {
        const results: Float32Array[] = [];
        for (let at = 18; at < 31; at++) {
          const beside = others.map((each) => rows(each, at, at + 1, "none"));
          results.push((await session.run([...beside, { ...rows(1, at, at + 1), slot }])).slice());
        }
        return results;
      };
      await session.run([rows(0, 0, 18, "none"), rows(1, 0, 18, "none"), rows(2, 0, 18, "none")]);
      const kept = await session.checkpoints!.save(1, 18);
      const alone = await steps(1, []);
      session.checkpoints!.restore(1, kept);
      expect(await steps(1, [0, 2])).toEqual(alone);
      session.copy({ from: 1, to: 0, length: 18 });
      session.checkpoints!.restore(0, kept);
      expect(await steps(0, [])).toEqual(alone);
    }));
});
