/** Shared parts of the comparison: the model and its tokens, the run of llama.cpp, and the figures. */
import { join } from "node:path";
import { openGguf } from "../../src/engine/formats/files/gguf.ts";
import { loadTokenizer } from "../../src/engine/text/tokenizer/load.ts";
import type { Tokenizer } from "../../src/engine/text/tokenizer/tokenizer.ts";
import type { Figure } from "../report/record.ts";
import { dequantize } from "./dequantize.ts";
import { fetchReal, realFolder } from "./fetch.ts";
import { openPeer, type Peer } from "./peer.ts";

export interface Bench {
  /** Gemma 3 270M as Q4_K_M. */
  readonly file: string;
  readonly tokenizer: Tokenizer;
  readonly peer: Peer;
  readonly threads: number;
  readonly figures: readonly Figure[];
  /** The same weights in a wider type, in a file that is written once. */
  wide(type: "f32" | "f16"): Promise<string>;
  /** The tokens of a text, without the token that begins texts. */
  encode(text: string): Int32Array;
  /** The name of the part that runs, for its figures. */
  part: string;
  /** Records a figure, and prints it. */
  tell(figure: Figure): void;
}

/** @param threads of each program */
export async function openBench(threads: number): Promise<Bench> {
  const file = await fetchReal("gemma");
  const gguf = openGguf(file);
  const tokenizer = loadTokenizer(gguf.metadata, file);
  gguf.close();
  const figures: Figure[] = [];
  const bench: Bench = {
    file,
    tokenizer,
    peer: await openPeer({ threads }),
    threads,
    figures,
    wide: (type) => dequantize(file, join(realFolder(), `gemma-${type}.gguf`), type),
    part: "",
    encode: (text) => tokenizer.encode(text, { addSpecial: true, parseSpecial: false }),
    tell(figure) {
      figures.push({ part: bench.part, ...figure });
      const theirs = figure.peer ? `, ${figure.peer.name} ${figure.peer.rounds[0]}` : "";
      console.log(`${figure.what}: ${figure.ours[0]} ${figure.unit} (${figure.measure})${theirs}`);
    },
  };
  return bench;
}

/** The number rounded to five digits. */
export const tidy = (value: number): number => Number(value.toPrecision(5));
