/** Files in other layouts than llama.cpp's, against the same model in llama.cpp's. */
import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { openGguf } from "../../../../src/engine/formats/files/gguf.ts";
import { repairGguf, repairHeader } from "../../../../src/engine/formats/gguf/repair/index.ts";
import type { Gguf, MetadataValue } from "../../../../src/engine/formats/gguf/gguf.ts";
import { loadTokenizer } from "../../../../src/engine/text/tokenizer/load.ts";
import { golden, hasGolden } from "../../../golden.ts";

interface Twin {
  readonly family: string;
  readonly ollama: string;
  readonly llamacpp: string;
  readonly ids?: readonly (readonly number[])[];
  readonly ends?: readonly number[];
}

const folder = golden("twins");
const index = hasGolden
  ? (JSON.parse(readFileSync(join(folder, "index.json"), "utf8")) as { texts: string[]; files: Twin[] })
  : { texts: [], files: [] };

/** Keys without influence on how a file runs. */
const ABOUT = /^general\.(?!architecture)|^tokenizer\.ggml\.scores$/;

describe.skipIf(!hasGolden)("repairs give the layout of llama.cpp", () => {
  const open: Gguf[] = [];
  afterAll(() => open.forEach((file) => file.close()));
  const load = (name: string): Gguf => {
    const file = openGguf(join(folder, name));
    open.push(file);
    return file;
  };

  for (const { family, ollama, llamacpp, ids, ends } of index.files) {
    test(`${family}: every key equals llama.cpp's`, () => {
      const [repaired, expected] = [repairGguf(load(ollama)), load(llamacpp)];
      for (const [key, value] of expected.metadata) {
        if (ABOUT.test(key) || (family === "gemma3n" && key === "tokenizer.ggml.token_type")) continue; // ids tell
        expect([key, plain(repaired.metadata.get(key))]).toEqual([key, plain(value)]);
      }
    });

    test(`${family}: every tensor equals llama.cpp's to the byte`, () => {
      const [repaired, expected] = [repairGguf(load(ollama)), load(llamacpp)];
      for (const [name, info] of expected.tensors) {
        if (keptApart(name, repaired)) continue;
        const got = repaired.tensors.get(name);
        expect([name, got?.shape, got?.quant.name]).toEqual([name, info.shape, info.quant.name]);
        expect(Buffer.compare(repaired.read(name), expected.read(name))).toBe(0);
      }
      for (const name of repaired.tensors.keys()) {
        if (!expected.tensors.has(name)) expect(name).toMatch(/\.ffn_(gate|up)(_exps)?\.weight$/);
      }
    });

    test.skipIf(!ids)(`${family}: token ids and end tokens equal llama.cpp's`, () => {
      const tokenizer = loadTokenizer(repairGguf(load(ollama)).metadata, ollama);
      for (const [i, text] of index.texts.entries()) {
        const got = tokenizer.encode(text, { addSpecial: false, parseSpecial: true });
        expect([text, [...got]]).toEqual([text, [...ids![i]!]]);
      }
      if (ends) for (const id of ends) expect(tokenizer.endOfGeneration.has(id)).toBe(true);
    });

    test(`${family}: llama.cpp's own layout is not changed`, () => {
      const file = load(llamacpp);
      expect(repairGguf(file)).toBe(file);
      expect(repairHeader(file)).toBe(file);
    });
  }
});

/** Gate and up, which llama.cpp has as one tensor; architectures read both layouts. */
function keptApart(name: string, { tensors }: Gguf): boolean {
  const [, blk, exps = ""] = /^(blk\.\d+)\.ffn_(?:gate_up(_exps)|up)\.weight$/.exec(name) ?? [];
  return blk !== undefined && ["gate", "up"].every((part) => tensors.has(`${blk}.ffn_${part}${exps}.weight`));
}

function plain(value: MetadataValue | undefined): unknown {
  return typeof value === "object" ? Array.from(value as ArrayLike<unknown>) : value;
}
