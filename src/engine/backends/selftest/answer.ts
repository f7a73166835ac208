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
/** The modes in which a sheet has different kernels. */
const MODES: Readonly<Record<string, readonly Mode[]>> = {
  products: [PRECISE, ROUNDED, SMALL],
  mixers: [PRECISE, ROUNDED, { precise: false, kvType: "q8_0" }],
  experts: [PRECISE, ROUNDED],
  parts: [ROUNDED],
  encoder: [PRECISE, ROUNDED],
};
/** The sheet that several threads compute again. Some may begin late or get no turn at all. */
const SHARED = "experts";
const THREADS = 3;
/** Workers have started within this time. */
const SHARED_MS = 60;

/** SHA-256 of all results, in hex. Throws `assert`'s error where several threads get other results than one. */
export async function answerOf(load: LoadSheet): Promise<string> {
  const parts: Float32Array[] = [];
  for (const sheet of makeSheets()) {
    for (const mode of MODES[sheet.name]!) {
      const first = parts.length;
      const session = await load(sheet, mode, 1);
      for (const batch of sheet.batches) parts.push((await session.run(batch)).slice());
      session.close();
      if (sheet.name === SHARED && mode === ROUNDED) await compareThreads(sheet, load, parts.slice(first));
    }
  }
  return sha256(parts);
}

async function compareThreads(sheet: Sheet, load: LoadSheet, expected: readonly Float32Array[]): Promise<void> {
  const end = performance.now() + SHARED_MS;
  const session = await load(sheet, ROUNDED, THREADS);
  do {
    for (const [i, batch] of sheet.batches.entries()) {
      const got = await session.run(batch);
      assert(equal(got, expected[i]!), `${THREADS} threads give other results than one`);
    }
  } while (performance.now() < end);
  session.close();
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
