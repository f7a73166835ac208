/**
 * Writes llama.cpp's answers on real weights to test/real/recorded/, for tests that run without it.
 *
 *   bun install --cwd bench && bun bench/real/record.ts
 *
 * Logits, losses and answers are of the weights as float32 with a float32 cache: llama.cpp rounds activations to 8 bits
 * where weights are quantized, and its sums are then further from exact sums than Hearth's.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { openGguf } from "../../src/engine/formats/files/gguf.ts";
import { loadTokenizer } from "../../src/engine/text/tokenizer/load.ts";
import { argmax } from "./compare.ts";
import { dequantize } from "./dequantize.ts";
import { fetchReal, realFolder } from "./fetch.ts";
import { LOGITS, LOSSES, RECORDED, type RecordedRow } from "./recorded.ts";
import { openPeer } from "./peer.ts";
import { ASKED, mixedTexts, PROMPTS } from "./texts.ts";

const file = await fetchReal("gemma");
const wide = await dequantize(file, join(realFolder(), "gemma-f32.gguf"), "f32");
const peer = await openPeer();
const gguf = openGguf(file);
const tokenizer = loadTokenizer(gguf.metadata, file);
const encode = (text: string): Int32Array => tokenizer.encode(text, { addSpecial: true, parseSpecial: false });
const write = (name: string, data: string | Uint8Array): Promise<number> => Bun.write(join(RECORDED, name), data);
mkdirSync(RECORDED, { recursive: true });

for (const special of [false, true]) {
  const ids = await peer.tokens(file, mixedTexts(LOGITS.texts), special);
  const hashes = Uint32Array.from(ids, (each) => Bun.hash.xxHash32(new Uint8Array(each.buffer)));
  await write(`ids-${special ? "special" : "plain"}.bin`, new Uint8Array(hashes.buffer));
}
await write("ends.json", `${JSON.stringify([...(await peer.ends(file))])}\n`);

const prompts = LOGITS.prompts.map((i) => encode(PROMPTS[i]!).subarray(0, LOGITS.length));
const logits = await peer.logits(wide, prompts, { ctxLen: LOGITS.length, kv: "f32" });
const rows: RecordedRow[] = [];
for (const [prompt, ids] of prompts.entries()) {
  const all = await logits.read(prompt);
  const vocabSize = all.length / ids.length;
  for (let at = LOGITS.every - 1; at < ids.length; at += LOGITS.every) {
    rows.push({ prompt, at, ...outlineOf(all.subarray(at * vocabSize, (at + 1) * vocabSize)) });
  }
}
logits.remove();
await write("logits.json", `[\n${rows.map((row) => JSON.stringify(row)).join(",\n")}\n]\n`);

const text = encode(await Bun.file(LOSSES.text).text()).subarray(0, LOSSES.length);
const [losses] = await peer.losses(wide, [text], { ctxLen: LOSSES.length, kv: "f32" });
await write("losses.bin", new Uint8Array(losses!.buffer));

const answers = await peer.greedy(wide, ASKED.map(encode), LOGITS.answer);
await write(
  "answers.json",
  `${JSON.stringify(
    answers.map((ids) => tokenizer.detokenize(ids)),
    null,
    2,
  )}\n`,
);
gguf.close();

/** The likeliest tokens with their ln p. */
function outlineOf(row: Float32Array): Pick<RecordedRow, "ids" | "logs"> {
  const max = row[argmax(row)]!;
  const sum = Math.log(row.reduce((total, value) => total + Math.exp(value - max), 0)) + max;
  const ids = [...row.keys()].sort((a, b) => row[b]! - row[a]!).slice(0, LOGITS.top);
  return { ids, logs: ids.map((id) => Number((row[id]! - sum).toFixed(5))) };
}
