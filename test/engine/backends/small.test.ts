/** Small models, for which every level of our kernels chooses the reference's tokens. */
import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { loadProgram } from "../../../src/engine/architectures/index.ts";
import type { Backend, Program } from "../../../src/engine/program/backend.ts";
import { cpuBackend } from "../../../src/engine/backends/cpu.ts";
import { withWeights } from "../../../src/engine/program/describe.ts";
import { loadOptionsFor } from "../../../src/engine/backends/small.ts";
import { openGguf } from "../../../src/engine/formats/files/gguf.ts";
import { loadTokenizer } from "../../../src/engine/text/tokenizer/load.ts";
import { everyLevel } from "./simd/levels.ts";

const gguf = openGguf(resolve(import.meta.dir, "../../../models/hearth/hearth.gguf"));
const program = loadProgram(gguf);
const tokenizer = loadTokenizer(gguf.metadata, gguf.path);
/** With 8-bit activations every level answers these with other tokens than the reference. */
const PROMPTS = ["In 1999,", "One day, a cat named", "Lily and Tom were"];
const COUNT = 18;

async function greedy(backend: Backend, prompt: string): Promise<number[]> {
  const options = { ctxLen: 64, slots: 1, precise: false, threads: 1, cacheDir: undefined };
  const session = await backend.load(program, loadOptionsFor(program, options));
  const answer: number[] = [];
  let tokens = Int32Array.from(tokenizer.encode(prompt, { addSpecial: true, parseSpecial: true }));
  for (let start = 0; answer.length < COUNT; start += tokens.length, tokens = Int32Array.of(answer.at(-1)!)) {
    const logits = await session.run([{ slot: 0, start, tokens, logits: "last" }]);
    answer.push(logits.indexOf(Math.max(...logits)));
  }
  session.close();
  return answer;
}

test("the embedded model counts as small, and a model of twice its rows does not", () => {
  const larger: Program = {
    ...program,
    steps: program.steps.map((step) => withWeights(step, (w) => ({ ...w, outDim: 2 * w.outDim }))),
  };
  expect(loadOptionsFor(program, { threads: 1 })).toEqual({ threads: 1, small: true });
  expect(loadOptionsFor(larger, {})).toEqual({ small: false });
});

test.each(PROMPTS)("every level answers %j with the reference's tokens", async (prompt) => {
  const expected = await greedy(cpuBackend, prompt);
  for (const { level, backend } of everyLevel) expect(await greedy(backend, prompt), level).toEqual(expected);
});
