/**
 * The parser of a format reads all texts that its grammar allows: random models open calls and continue under the
 * grammar, or must make one, and Ajv accepts the arguments of every call. `bench/calls.ts` does the same at length.
 */
import { describe, expect, test } from "bun:test";
import { makeRng } from "../../../src/engine/text/rng.ts";
import { toolFormats, type ToolFormatName } from "../../../src/runtime/parse/index.ts";
import { drawn, testSeed } from "../../seed.ts";
import { callIn, CALL_MODES, makeCaller } from "./call-runs.ts";
import { awkwardTools } from "./call-tools.ts";

const NAMES = Object.keys(toolFormats) as ToolFormatName[]; // the keys of a literal
const SEED = testSeed % 1_000_000;
const ANSWERS = 24;

describe.each(NAMES)("%s", (name) => {
  test.each(drawn(`tokens of ${name}`, [false, true], 1))(
    "every call parses and fits its schema; tokens that are parts of characters: %p",
    async (isByteLevel) => {
      const tools = awkwardTools(SEED % 1000);
      const caller = makeCaller(name, tools, isByteLevel);
      let called = 0;
      try {
        for (let i = 0; i < ANSWERS; i++) {
          const seed = SEED + i;
          const mode = CALL_MODES[i % CALL_MODES.length]!;
          const found = await callIn(caller, { mode, seed, pieces: makeRng(seed) });
          if (found.kind === "fault") throw new Error(`${mode}, seed ${seed}: ${found.why}`);
          if (found.kind === "calls") called++;
        }
      } finally {
        caller.dispose();
      }
      expect(called).toBeGreaterThan(ANSWERS / 3);
    },
    120_000,
  );
});
