/** Reference vocabularies, of which a run draws some by its seed, against llama.cpp's tokens of the same texts. */
import { readFileSync } from "node:fs";
import { expect } from "bun:test";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { loadTokenizer, type LoadedTokenizer } from "../../../../src/engine/text/tokenizer/load.ts";
import { golden, goldenTest } from "../../../golden.ts";
import { drawn } from "../../../seed.ts";
import { makeProse, PARSED, PLAIN } from "./fixtures.ts";
import { cpuMs } from "../../../cpu-time.ts";

/** Ids that llama.cpp reports for each file: BOS, EOS, line feed, ends of generation, whether BOS is added. */
const VOCABULARIES = {
  "bert-bge": { bos: 101, eos: undefined, newline: undefined, ends: [0], addBos: true },
  "command-r": { bos: 5, eos: 255001, newline: 206, ends: [0, 255001], addBos: true },
  "deepseek-coder": { bos: 32013, eos: 32014, newline: 185, ends: [32014], addBos: true },
  falcon: { bos: 11, eos: 11, newline: 193, ends: [11], addBos: false },
  "gemma-4": { bos: 2, eos: 1, newline: 107, ends: [1, 50, 106], addBos: true },
  "gpt-2": { bos: 50256, eos: 50256, newline: 198, ends: [50256], addBos: false },
  "llama-bpe": { bos: 128000, eos: 128001, newline: 198, ends: [128001, 128009], addBos: true },
  "llama-spm": { bos: 1, eos: 2, newline: 13, ends: [2], addBos: true },
  "phi-3": { bos: 1, eos: 32000, newline: 13, ends: [2, 32000, 32007], addBos: true },
  qwen2: { bos: 151643, eos: 151643, newline: 198, ends: [128247, 151643, 151645], addBos: false },
  qwen35: { bos: 151643, eos: 151643, newline: 198, ends: [128247, 151643, 151645], addBos: false },
  starcoder: { bos: 0, eos: 0, newline: 222, ends: [0, 4], addBos: false },
} as const;

const pathOf = (name: string): string => golden(`vocab/ggml-vocab-${name}.gguf`);

let prose: string | undefined;

/** Loads a vocabulary and closes the file, because a tokenizer keeps none of it open. */
function load(name: string): LoadedTokenizer {
  const gguf = openGguf(pathOf(name));
  try {
    return loadTokenizer(gguf.metadata, pathOf(name));
  } finally {
    gguf.close();
  }
}

for (const [name, expected] of drawn("reference vocabularies", Object.entries(VOCABULARIES), 4)) {
  goldenTest(
    `${name}: texts give llama.cpp's ids, special ids are llama.cpp's, a megabyte takes seconds at most`,
    () => {
      const tokenizer = load(name);
      const texts = readFileSync(`${pathOf(name)}.inp`, "utf8").split("\n__ggml_vocab_test__\n");
      const wanted = readFileSync(`${pathOf(name)}.out`, "utf8").split("\n");
      expect(texts.length).toBeGreaterThan(40);
      for (const options of [PLAIN, PARSED]) {
        const got = texts.map((text) => tokenizer.encode(text, options).join(" "));
        expect(got).toEqual(texts.map((_, i) => wanted[i]!.trim()));
      }
      expect({
        bos: tokenizer.bos,
        eos: tokenizer.eos,
        newline: tokenizer.newlineId,
        ends: [...tokenizer.endOfGeneration].sort((a, b) => a - b),
        addBos: tokenizer.vocabulary!.addBos,
      }).toEqual({ ...expected, ends: [...expected.ends] });
      if (tokenizer.family !== "wpm") {
        for (const text of texts) expect(tokenizer.detokenize(tokenizer.encode(text, PLAIN))).toBe(text);
      }
      prose ??= makeProse(1e6);
      const start = cpuMs();
      tokenizer.encode(prose, PARSED);
      expect(cpuMs() - start).toBeLessThan(10_000);
    },
  );
}
