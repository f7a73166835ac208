/** The answer of a kernel library to the sheets: one hash of everything that it computed. */
import { assert } from "../../../base/index.ts";
import type { LoadOptions, Session } from "../../program/backend.ts";
import type { Sheet } from "./sheet.ts";
import { makeSheets } from "./sheets.ts";

type Mode = Pick<LoadOptions, "precise" | "small" | "kvType">;

/** Loads a sheet's program on the library in question. */
export type LoadSheet = (sheet: Sheet, mode: Mode, threads: number) => Promise<Session>;

const PRECISE: Mode = { precise: true };
const ROUNDED: Mode = { precise: false };
const SMALL: Mode = { precise: false, small: true };
/** With each type of keys and values. */
const KEPT: readonly Mode[] = [
  PRECISE,
  ROUNDED,
  { precise: false, kvType: "q8_0" },
  { precise: false, kvType: "q4_0" },
];
/** The modes in which a sheet has different kernels. */
const MODES: Readonly<Record<string, readonly Mode[]>> = {
  products: [PRECISE, ROUNDED],
  small: [SMALL],
  mixers: KEPT,
  experts: [PRECISE, ROUNDED],
  parts: [ROUNDED],
  encoder: [PRECISE, ROUNDED],
  given: KEPT,
};
/** The sheet that several threads compute too. */
const SHARED = "experts";
const THREADS = 2;
/** Repetitions with several threads, so that at least one shows a race. */
const SHARED_RUNS = 4;

/**
 * SHA-256 of all results, in hex. Throws `assert`'s error if several threads compute other results than one.
 * @param threads 1: results are not compared, and one session is open at a time
 */
export async function answerOf(load: LoadSheet, { threads = THREADS } = {}): Promise<string> {
  const sheets = makeSheets();
  const sharedSheet = sheets.find(({ name }) => name === SHARED)!; // makeSheets has it
  // starts its threads while one thread computes the sheets
  const shared = threads > 1 ? await load(sharedSheet, ROUNDED, threads) : undefined;
  const parts: Float32Array[] = [];
  let expected: readonly Float32Array[] = [];
  for (const sheet of sheets) {
    for (const mode of MODES[sheet.name]!) {
      const session = await load(sheet, mode, 1);
      const results: Float32Array[] = [];
      for (const batch of sheet.batches) results.push((await session.run(batch)).slice());
      session.close();
      parts.push(...results);
      if (sheet === sharedSheet && mode === ROUNDED) expected = results;
    }
  }
  if (shared) await compareThreads(shared, sharedSheet, expected);
  shared?.close();
  return sha256(parts);
}

async function compareThreads(session: Session, sheet: Sheet, expected: readonly Float32Array[]): Promise<void> {
  for (let run = 0; run < SHARED_RUNS; run++) {
    for (const [i, batch] of sheet.batches.entries()) {
      const got = await session.run(batch);
      assert(equal(got, expected[i]!), "several threads give other results than one");
    }
  }
}

const equal = (a: Float32Array, b: Float32Array): boolean =>
  a.length === b.length && a.every((value, i) => Object.is(value, b[i]));

async function sha256(parts: readonly Float32Array[]): Promise<string> {
  const all = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return new Uint8Array(await crypto.subtle.digest("SHA-256", all)).toHex();
}
