/** Gemma 3 270M as pretrained and quantized by others: ids and probabilities equal llama.cpp's. */
import { afterAll, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { argmax } from "../../bench/real/compare.ts";
import { LOGITS, LOSSES, type RecordedRow } from "../../bench/real/recorded.ts";
import { mixedTexts, PROMPTS } from "../../bench/real/texts.ts";
import { logSum, lossesOf, openSide } from "../../bench/real/side.ts";
import { levelsHere } from "../../src/engine/backends/host/simd-library.ts";
import { openGguf } from "../../src/engine/formats/files/gguf.ts";
import { loadTokenizer } from "../../src/engine/text/tokenizer/load.ts";
import { drawn } from "../seed.ts";
import { realModel, recorded } from "./models.ts";

setDefaultTimeout(240_000); // other processes share the cores
const gemma = await realModel("gemma");
const gguf = gemma.path === "" ? undefined : openGguf(gemma.path);
const tokenizer = gguf && loadTokenizer(gguf.metadata, gemma.path);
afterAll(() => gguf?.close());
const encode = (text: string): Int32Array => tokenizer!.encode(text, { addSpecial: true, parseSpecial: false });

for (const special of [false, true]) {
  gemma.test(
    `${LOGITS.texts} texts have the ids of llama.cpp, control tokens ${special ? "read" : "as text"}`,
    async () => {
      const hashes = new Uint32Array(await recorded(`ids-${special ? "special" : "plain"}.bin`).arrayBuffer());
      const texts = mixedTexts(LOGITS.texts);
      const different = texts.filter((text, i) => {
        const ids = tokenizer!.encode(text, { addSpecial: false, parseSpecial: special });
        return Bun.hash.xxHash32(new Uint8Array(ids.buffer, ids.byteOffset, ids.byteLength)) !== hashes[i];
      });
      expect(different).toEqual([]);
    },
  );
}

gemma.test("ids decode to the text, except for the vocabulary's space character", () => {
  const texts = mixedTexts(LOGITS.texts).filter((text) => !text.includes("▁"));
  const different = texts.filter((text) => {
    const ids = tokenizer!.encode(text, { addSpecial: false, parseSpecial: true });
    return tokenizer!.detokenize(ids, { special: true }) !== text;
  });
  expect(different).toEqual([]);
});

gemma.test("end tokens equal llama.cpp's", async () => {
  const ids = (await recorded("ends.json").json()) as number[];
  expect([...tokenizer!.endOfGeneration].toSorted((a, b) => a - b)).toEqual(ids);
});

/** Differences of ln p at the recorded positions: the largest, and that of the likeliest tokens on average. */
async function distance(side: string, prompts: readonly number[]) {
  const rows = ((await recorded("logits.json").json()) as RecordedRow[]).filter(({ prompt }) =>
    prompts.includes(prompt),
  );
  const session = await openSide(gemma.path, side, { ctxLen: LOGITS.length });
  let [largest, sum, others] = [0, 0, 0];
  for (const prompt of prompts) {
    const tokens = encode(PROMPTS[LOGITS.prompts[prompt]!]!).subarray(0, LOGITS.length);
    await session.logits(tokens, (logits) => {
      for (const { at, ids, logs } of rows.filter((row) => row.prompt === prompt)) {
        const row = logits.subarray(at * session.vocabSize, (at + 1) * session.vocabSize);
        const all = logSum(row);
        const found = ids.map((id) => row[id]! - all);
        found.forEach((log, i) => (largest = Math.max(largest, Math.abs(log - logs[i]!))));
        sum += Math.abs(found[0]! - logs[0]!);
        others += Number(argmax(row) !== ids[0] && logs[0]! - logs[1]! > 0.01); // nearly equal ones may change places
      }
    });
  }
  session.close();
  return { largest, mean: sum / rows.length, others: others / rows.length };
}

/** The best level, and one more, which the run's seed draws. */
const [best, ...others] = [...levelsHere().map(({ level }) => `simd:${level}`), "wasm"];
for (const side of [best!, ...drawn("levels for trained weights", others, 1)]) {
  const prompts = [...LOGITS.prompts.keys()].slice(0, side === best ? 5 : 3);
  gemma.test(`${side} with float32 activations has llama.cpp's probabilities`, async () => {
    const { largest, others } = await distance(`${side}+precise`, prompts);
    expect(largest).toBeLessThan(0.03);
    expect(others).toBe(0);
  });

  gemma.test(`${side} with 8-bit activations is as near to float32's probabilities as llama.cpp's is`, async () => {
    const { mean, others } = await distance(side, prompts);
    expect(mean).toBeLessThan(0.137); // llama.cpp with 8-bit activations
    expect(others).toBeLessThan(0.1);
  });
}

const licenceTest = existsSync(LOSSES.text) ? gemma.test : test.skip; // Debian ships it
licenceTest("a text of 576 tokens is as likely as for llama.cpp, behind the sliding window too", async () => {
  const tokens = encode(await Bun.file(LOSSES.text).text()).subarray(0, 576); // a window, and 64 behind it
  const expected = new Float32Array(await recorded("losses.bin").arrayBuffer()).subarray(0, tokens.length - 1);
  const session = await openSide(gemma.path, "simd+precise", { ctxLen: LOSSES.length });
  const losses = await lossesOf(session, tokens);
  session.close();
  const apart = Array.from(losses, (loss, i) => Math.abs(loss - expected[i]!));
  expect(apart.length).toBe(expected.length);
  expect(Math.max(...apart)).toBeLessThan(0.03);
  const perplexity = (values: Float32Array): number =>
    Math.exp(values.reduce((total, value) => total + value, 0) / values.length);
  expect(perplexity(losses) / perplexity(expected)).toBeWithin(0.9995, 1.0005);
});
