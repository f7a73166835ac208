/**
 * Runs before the tests of a process: gives fast-check and child processes the seed of the run, and prints it.
 * After each test, and after the last, what fixtures left to be done.
 */
import { afterAll, afterEach } from "bun:test";
import fc from "fast-check";
import { cleanUp, end } from "./cleanups.ts";
import { SEED_VARIABLE, testSeed } from "./seed.ts";

/** What is found with SQLite is not looked for again. */
const onPostgres = process.env["HEARTH_TEST_POSTGRES"] !== undefined;
fc.configureGlobal({ seed: testSeed, ...(onPostgres ? { numRuns: 10 } : {}) });
process.env[SEED_VARIABLE] = `${testSeed}`;
afterEach(cleanUp);
afterAll(end); // of all files
console.error(`${SEED_VARIABLE}=${testSeed} replays what these tests draw`);
