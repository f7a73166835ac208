/**
 * Command lines to start Hearth in tests: from its sources, or as a compiled program, in a run that has compiled it
 * (`test/run.ts`), which starts in half the time.
 */
import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { join, resolve } from "node:path";

/** Names the compiled program; unset or empty if tests start the sources. */
export const PROGRAM_VARIABLE = "HEARTH_TEST_PROGRAM";

/** The compiled program, if there is one. */
export const COMPILED = process.env[PROGRAM_VARIABLE] || undefined;

/** The command line of Hearth, without arguments. */
export const HEARTH: readonly string[] = COMPILED ? [COMPILED] : fromSource(resolve(import.meta.dir, "../src/main.ts"));

/** The command line of a runner, whose model comes over its channel. */
export const RUNNER: readonly string[] = [...HEARTH, "runner"];

/** Starts a source tree's `src/main.ts`. */
export function fromSource(main: string): readonly string[] {
  return [process.execPath, main];
}

/** Names the folder that stands for `~/.cache/hearth` in every home; unset or empty: each home begins without one. */
export const MACHINE_CACHE_VARIABLE = "HEARTH_TEST_MACHINE_CACHE";

/**
 * Gives a home the run's cache about this machine: the verdict on the CPU kernels, and the files that the compiled
 * program unpacks. Each home of its own would cost half a second of processor time to test and unpack.
 */
export function shareMachineCache(home: string): void {
  const shared = process.env[MACHINE_CACHE_VARIABLE];
  const folder = join(home, ".cache/hearth");
  if (!shared || existsSync(folder) || !existsSync(home)) return;
  mkdirSync(join(home, ".cache"), { recursive: true });
  symlinkSync(shared, folder);
}
