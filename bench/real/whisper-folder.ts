/** Whisper base as a folder of ONNX, made from CTranslate2's files. */
import { isObject } from "../../src/base/untrusted.ts";
import { readCtranslate2 } from "./ctranslate2.ts";
import { whisperFiles } from "./whisper-graph.ts";

export const BASE = { dim: 512, heads: 8, layers: 6, ffn: 2048, vocab: 51_865, bins: 80, positions: 448 };

/** @param read returns a file of the packages, by its name */
export function whisperFolder(read: (name: string) => Uint8Array): ReadonlyMap<string, Uint8Array> {
  const weights = readCtranslate2(Buffer.concat([read("model.bin.part1"), read("model.bin.part2")]));
  const kept = new Map<string, Float32Array>(); // some matrices are parts of one weight
  const weight = (name: string): Float32Array => {
    const values = kept.get(name) ?? weights.get(name)?.();
    if (!values) throw new Error(`the file of weights has no '${name}'`);
    kept.set(name, values);
    return values;
  };
  const files = whisperFiles(BASE, weight, idsOf(read("config.json")));
  return new Map([...Object.entries(files), ["tokenizer.json", read("tokenizer.json")]]);
}

/** Ids that CTranslate2's configuration lists, as transformers names them. */
export function idsOf(bytes: Uint8Array): object {
  const config: unknown = JSON.parse(new TextDecoder().decode(bytes));
  const { suppress_ids: suppressed, suppress_ids_begin: suppressedFirst } = isObject(config) ? config : {};
  const more = { suppress_tokens: suppressed, begin_suppress_tokens: suppressedFirst };
  return { ...more, eos_token_id: 50_257, decoder_start_token_id: 50_258 };
}
