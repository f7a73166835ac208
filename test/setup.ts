/** Runs before the tests of a process: gives fast-check and child processes the seed of the run, and prints it. */
import fc from "fast-check";
import { SEED_VARIABLE, testSeed } from "./seed.ts";

fc.configureGlobal({ seed: testSeed });
process.env[SEED_VARIABLE] = `${testSeed}`;
console.error(`${SEED_VARIABLE}=${testSeed} replays what these tests draw`);
