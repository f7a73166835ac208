/**
 * Hearth and llama.cpp on trained weights: Gemma 3 270M as a Q4_K_M file. The reference is llama.cpp on the same
 * weights as float32, where it does not round activations to 8 bits; both sides are compared with it.
 *
 *   bun install --cwd bench
 *   bun bench/real/run.ts [--record] [--sides simd,wasm+precise,…] [--tokens 1500] [--quantize]
 *
 * `--tokens` of a licence are scored; `--quantize` compares the bytes of all types, and takes minutes.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { levelsHere } from "../../src/engine/backends/host/simd-library.ts";
import { openGguf } from "../../src/engine/formats/files/gguf.ts";
import { loadTokenizer } from "../../src/engine/text/tokenizer/load.ts";
import { quantizeFile } from "../../src/library/create/quantize.ts";
import { fileTypeId, parseFileType } from "../../src/library/create/quantize-mix.ts";
import { writeRecord, type Figure } from "../report/record.ts";
import { Differences, type Difference } from "./compare.ts";
import { dequantize } from "./dequantize.ts";
import { fetchReal, realFolder } from "./fetch.ts";
import { openPeer, type LogitsFile } from "./peer.ts";
import { LOGITS, LOSSES } from "./recorded.ts";
import { envOf, lossesOf, openSide } from "./side.ts";
import { mixedTexts, PROMPTS } from "./texts.ts";

const levels = levelsHere().flatMap(({ level }) => [`simd:${level}`, `simd:${level}+precise`]);
const { values: flags } = parseArgs({
  options: {
    record: { type: "boolean", default: false },
    sides: { type: "string", default: [...levels, "wasm", "wasm+precise"].join(",") },
    tokens: { type: "string", default: "1500" },
    quantize: { type: "boolean", default: false },
  },
});
const TYPES = "q2_K q3_K_S q3_K_M q3_K_L q4_0 q4_1 q4_K_S q4_K_M q5_0 q5_1 q5_K_S q5_K_M q6_K q8_0".split(" ");
const file = await fetchReal("gemma");
const wide = (type: "f32" | "f16"): Promise<string> => dequantize(file, join(realFolder(), `gemma-${type}.gguf`), type);

if (process.env["ORT_DISABLE_TELEMETRY"] !== "1") {
  const env = await envOf(flags.sides); // native code reads the variables that the process started with
  const command = [process.execPath, ...process.argv.slice(1)];
  process.exit(await Bun.spawn(command, { env, stdio: ["ignore", "inherit", "inherit"] }).exited);
}
const peer = await openPeer();
const gguf = openGguf(file);
const tokenizer = loadTokenizer(gguf.metadata, file);
gguf.close();
const encode = (text: string): Int32Array => tokenizer.encode(text, { addSpecial: true, parseSpecial: false });
const figures: Figure[] = [];
const tell = (figure: Figure): void => {
  figures.push(figure);
  const theirs = figure.peer ? `, ${figure.peer.name} ${figure.peer.rounds[0]}` : "";
  console.log(`${figure.what}: ${figure.ours[0]} ${figure.unit} (${figure.measure})${theirs}`);
};

await compareIds();
await compareLogits();
await comparePerplexity();
if (flags.quantize) await compareQuantized();
if (flags.record) writeRecord("real", { title: "Trained weights: Gemma 3 270M, Q4_K_M", figures });
process.exit(0);

async function compareIds(): Promise<void> {
  const texts = mixedTexts(LOGITS.texts);
  const theirs = await peer.tokens(file, texts, false);
  const equal = texts.filter((text, i) => {
    const ours = tokenizer.encode(text, { addSpecial: false, parseSpecial: false });
    return Buffer.compare(new Uint8Array(ours.buffer), new Uint8Array(theirs[i]!.buffer)) === 0;
  });
  const goal = { of: "value", atLeast: texts.length } as const;
  tell({ what: "ids of mixed texts", measure: "equal to llama.cpp's", unit: "texts", ours: [equal.length], goal });
}

async function compareLogits(): Promise<void> {
  const prompts = LOGITS.prompts.map((i) => encode(PROMPTS[i]!).subarray(0, LOGITS.length));
  const cache = { ctxLen: LOGITS.length, kv: "f32" } as const;
  const reference = await peer.logits(await wide("f32"), prompts, cache);
  const rounded = await peer.logits(file, prompts, { ...cache, kv: "f16" });
  const theirs = await differenceOf(prompts, reference, async (i, add) => add(await rounded.read(i)));
  for (const name of flags.sides.split(",")) {
    const side = await openSide(file, name, cache);
    const ours = await differenceOf(prompts, reference, (i, add) => side.logits(prompts[i]!, add));
    side.close();
    const what = `${name}, ${ours.positions} positions`;
    const versus = (value: number) => ({ name: "llama.cpp, rounding too", rounds: [tidy(value)] });
    const isPrecise = name.includes("precise");
    const goal = isPrecise ? ({ of: "value", atMost: 1e-5 } as const) : ({ of: "ratio", atMost: 1 } as const);
    const common = { what, peer: versus(theirs.kl), goal };
    tell({
      ...common,
      measure: "KL divergence",
      unit: "millinats",
      ours: [tidy(1000 * ours.kl)],
      peer: versus(1000 * theirs.kl),
      goal: isPrecise ? { of: "value", atMost: 0.01 } : goal,
    });
    tell({
      ...common,
      measure: "NMSE",
      unit: "10⁻⁶",
      ours: [tidy(1e6 * ours.nmse)],
      peer: versus(1e6 * theirs.nmse),
      goal: isPrecise ? { of: "value", atMost: 1 } : goal,
    });
    tell({
      what,
      measure: "likeliest token equal",
      unit: "%",
      ours: [tidy(100 * ours.top1)],
      peer: versus(100 * theirs.top1),
    });
  }
  reference.remove();
  rounded.remove();
}

type Answer = (prompt: number, add: (rows: Float32Array) => void) => Promise<void>;

async function differenceOf(
  prompts: readonly Int32Array[],
  reference: LogitsFile,
  answer: Answer,
): Promise<Difference> {
  const sum = new Differences(tokenizer.vocabSize);
  for (const i of prompts.keys()) {
    const expected = await reference.read(i);
    await answer(i, (rows) => sum.add(rows, expected));
  }
  return sum.result();
}

async function comparePerplexity(): Promise<void> {
  const tokens = encode(await Bun.file(LOSSES.text).text()).subarray(0, Number(flags.tokens));
  const ctxLen = tokens.length;
  const perplexity = (losses: Float32Array): number =>
    tidy(Math.exp(losses.reduce((sum, loss) => sum + loss, 0) / losses.length));
  for (const [name, kv] of [
    ["simd", "f16"],
    ["simd+q8_0", "q8_0"],
  ] as const) {
    const side = await openSide(file, name, { ctxLen });
    const ours = perplexity(await lossesOf(side, tokens));
    side.close();
    const [losses] = await peer.losses(file, [tokens], { ctxLen, kv });
    const theirs = { name: `llama.cpp, ${kv} cache`, rounds: [perplexity(losses!)] };
    const goal = { of: "ratio", atMost: 1.002 } as const;
    tell({
      what: `GPL-3, ${ctxLen} tokens, ${kv} cache`,
      measure: "perplexity",
      unit: "",
      ours: [ours],
      peer: theirs,
      goal,
    });
  }
}

async function compareQuantized(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "hearth-real-"));
  const [ours, theirs] = [join(folder, "ours"), join(folder, "theirs")];
  for (const type of TYPES) {
    await quantizeFile({ from: await wide("f16"), to: ours, type });
    await peer.quantize(await wide("f16"), theirs, fileTypeId(parseFileType(type)));
    const [a, b] = [openGguf(ours), openGguf(theirs)];
    const differ = [...a.tensors.keys()].filter((name) => Buffer.compare(a.read(name), b.read(name)) !== 0).length;
    a.close();
    b.close();
    tell({
      what: `quantized to ${type}`,
      measure: "tensors unlike llama.cpp's",
      unit: "",
      ours: [differ],
      goal: { of: "value", atMost: 0 },
    });
  }
  rmSync(folder, { recursive: true });
}

function tidy(value: number): number {
  return Number(value.toPrecision(5));
}
