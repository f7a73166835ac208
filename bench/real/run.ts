/**
 * Hearth and llama.cpp on trained weights: Gemma 3 270M as a Q4_K_M file. The reference is llama.cpp on the same
 * weights as float32, where it does not round activations to 8 bits; both sides are compared with it.
 *
 *   bun install --cwd bench
 *   bun bench/real/run.ts [--record] [--parts ids,logits,…] [--threads 2] [--sides simd,wasm+precise,…]
 *     [--depths 8192,32768] [--tokens 4096] [--types Q4_K_M,+q8_0,…] [--python FILE] [--show]
 *
 * All parts take an hour and 8 GB of temporary files. `--record` writes real.json; with `--parts`, only the figures of
 * these parts there. `--tokens`: the length of the text whose perplexity is measured. `--types`: of files, and of
 * caches after a plus sign. `--python`: of an environment for export-onnx.py, which makes an ONNX graph of MiniLM.
 * `--show`: also prints the answers.
 */
import { parseArgs } from "node:util";
import { levelsHere } from "../../src/engine/backends/host/simd-library.ts";
import { readRecords, writeRecord } from "../report/record.ts";
import { compareAnswers } from "./answers.ts";
import { openBench, tidy } from "./bench.ts";
import { Differences, type Difference } from "./compare.ts";
import { checkConversations } from "./conversations.ts";
import { compareDeep } from "./deep.ts";
import type { LogitsFile } from "./peer.ts";
import { compareRounded } from "./quantized.ts";
import { LOGITS, LOSSES } from "./recorded.ts";
import { envOf, lossesOf, openSide } from "./side.ts";
import { mixedTexts, PROMPTS } from "./texts.ts";
import { compareVectors } from "./vectors.ts";

/** Tokens of a prompt for logits: 2,000 positions in all. Two texts are joined to get enough of them. */
const PROMPT_LENGTH = 40;
/** Number of prompts for sides that are slow without a GPU. */
const SLOW: Readonly<Record<string, number>> = { webgpu: 5 };
const levels = levelsHere().flatMap(({ level }) => [`simd:${level}`, `simd:${level}+precise`]);
const { values: flags } = parseArgs({
  options: {
    record: { type: "boolean", default: false },
    parts: { type: "string", default: "" },
    sides: { type: "string", default: [...levels, "wasm", "wasm+precise", "onnx", "webgpu"].join(",") },
    depths: { type: "string", default: "8192,32768" },
    tokens: { type: "string", default: "4096" },
    types: { type: "string", default: "" },
    threads: { type: "string", default: "2" },
    show: { type: "boolean", default: false },
    python: { type: "string" },
  },
});
const listOf = (text: string): string[] => text.split(",").filter((word) => word !== "");

if (process.env["ORT_DISABLE_TELEMETRY"] !== "1") {
  const env = await envOf(flags.sides); // native code reads the variables with which the process was started
  const command = [process.execPath, ...process.argv.slice(1)];
  process.exit(await Bun.spawn(command, { env, stdio: ["ignore", "inherit", "inherit"] }).exited);
}
const bench = await openBench(Number(flags.threads));
const { file, tokenizer, peer, encode, tell, wide, figures } = bench;

const PARTS: Readonly<Record<string, () => Promise<void>>> = {
  ids: compareIds,
  logits: compareLogits,
  perplexity: comparePerplexity,
  deep: () => compareDeep(bench, listOf(flags.depths).map(Number)),
  rounded: () => compareRounded(bench, listOf(flags.types)),
  answers: () => compareAnswers(bench, flags.show),
  conversations: () => checkConversations(bench),
  vectors: () => compareVectors(tell, flags.python),
};
const parts = listOf(flags.parts);
const unknown = parts.find((name) => !Object.hasOwn(PARTS, name));
if (unknown !== undefined) throw new Error(`--parts ${unknown}: expected some of ${Object.keys(PARTS).join(", ")}`);
for (const [name, part] of Object.entries(PARTS)) {
  if (parts.length > 0 && !parts.includes(name)) continue;
  bench.part = name;
  await part();
}
const earlier = parts.length === 0 ? undefined : readRecords().get("real");
if (flags.record) writeRecord("real", { title: "Trained weights", figures }, earlier);
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
  const length = PROMPT_LENGTH;
  const prompts = PROMPTS.map((text, i) => encode(`${text}\n${PROMPTS[(i + 1) % PROMPTS.length]}`).subarray(0, length));
  const cache = { ctxLen: length, kv: "f32" } as const;
  const reference = await peer.logits(await wide("f32"), prompts, cache);
  const rounded = await peer.logits(file, prompts, { ...cache, kv: "f16" });
  for (const name of flags.sides.split(",")) {
    const some = prompts.slice(0, SLOW[name.split("+")[0]!]);
    const theirs = await differenceOf(some, reference, async (i, add) => add(await rounded.read(i)));
    const side = await openSide(file, name, { ...cache, threads: bench.threads });
    const ours = await differenceOf(some, reference, (i, add) => side.logits(some[i]!, add));
    side.close();
    tellLogits(name, ours, theirs);
  }
  reference.remove();
  rounded.remove();
}

function tellLogits(name: string, ours: Difference, theirs: Difference): void {
  const what = `${name}, ${ours.positions} positions`;
  const versus = (value: number) => ({ name: "llama.cpp, rounding too", rounds: [tidy(value)] });
  const isPrecise = name.includes("precise");
  const ratio = { of: "ratio", atMost: 1 } as const;
  tell({
    what,
    measure: "KL divergence",
    unit: "millinats",
    ours: [tidy(1000 * ours.kl)],
    peer: versus(1000 * theirs.kl),
    goal: isPrecise ? { of: "value", atMost: 0.01 } : ratio,
  });
  tell({
    what,
    measure: "NMSE",
    unit: "10⁻⁶",
    ours: [tidy(1e6 * ours.nmse)],
    peer: versus(1e6 * theirs.nmse),
    goal: isPrecise ? { of: "value", atMost: 1 } : ratio,
  });
  tell({
    what,
    measure: "likeliest token equal",
    unit: "%",
    ours: [tidy(100 * ours.top1)],
    peer: versus(100 * theirs.top1),
  });
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
    const side = await openSide(file, name, { ctxLen, threads: bench.threads });
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
