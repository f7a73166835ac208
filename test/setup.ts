/**
 * Runs before the tests of a process: gives fast-check and child processes the seed of the run, and prints it. Runs
 * fixtures' cleanups after each test, and after the last.
 */
import { afterAll, afterEach } from "bun:test";
import fc from "fast-check";
import { cleanUp, end } from "./cleanups.ts";
import { SEED_VARIABLE, testSeed } from "./seed.ts";

/** Faults found with SQLite are not searched again. */
const onPostgres = process.env["HEARTH_TEST_POSTGRES"] !== undefined;
fc.configureGlobal({ seed: testSeed, ...(onPostgres ? { numRuns: 10 } : {}) });
process.env[SEED_VARIABLE] = `${testSeed}`;
afterEach(cleanUp);
afterAll(end); // after all files
console.error(`${SEED_VARIABLE}=${testSeed} replays what these tests draw`);
