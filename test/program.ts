/**
 * The command lines by which tests start Hearth: from its sources, or, in a run that has compiled them once
 * (`test/run.ts`), as that program, which starts in half the time.
 */
import { resolve } from "node:path";

/** Names the compiled program; unset or empty where tests start the sources. */
export const PROGRAM_VARIABLE = "HEARTH_TEST_PROGRAM";

/** The compiled program, where there is one. */
export const COMPILED = process.env[PROGRAM_VARIABLE] || undefined;

/** The command line of Hearth, without arguments. */
export const HEARTH: readonly string[] = COMPILED ? [COMPILED] : fromSource(resolve(import.meta.dir, "../src/main.ts"));

/** The command line of a runner, whose model comes over its channel. */
export const RUNNER: readonly string[] = [...HEARTH, "runner"];

/** Of a source tree's `src/main.ts`. */
export function fromSource(main: string): readonly string[] {
  return [process.execPath, main];
}
