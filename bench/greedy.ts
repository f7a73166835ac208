/**
 * Compares 64 greedy tokens of Hearth, in precise and in default mode, with llama.cpp's on the same file and the same
 * prompt ids, for ten prompts. Reports for each the number of equal tokens before the first difference, and the gap of
 * our precise logits there. llama.cpp rounds activations to 8 bits, so if two tokens are nearly tied it may choose
 * otherwise than exact arithmetic.
 *
 *   bun bench/greedy.ts [FILE.gguf] [--tokens 64] [--raw]
 *
 * Prompts are in ChatML, as the embedded model's template writes it; with --raw they are continued verbatim.
 */
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { getLlama, LlamaLogLevel, type Token } from "node-llama-cpp";
import { loadProgram } from "../src/engine/architectures/index.ts";
import type { Session } from "../src/engine/program/backend.ts";
import { onnxBackend } from "../src/engine/backends/onnx/index.ts";
import { physicalCores } from "../src/engine/backends/onnx/threads.ts";
import { openGguf } from "../src/engine/formats/files/gguf.ts";
import { loadTokenizer } from "../src/engine/text/tokenizer/load.ts";
import { argmax } from "./sides.ts";

const PROMPTS = [
  "Once upon a time, there was a little girl who lived near the sea.",
  "Hello! How are you today?",
  "What is the capital of France?",
  "Tell me a short story about a cat and a dog.",
  "How much is seven plus five?",
  "The sun was shining and the children went to the park. They",
  "Write one sentence about the moon.",
  "What can I do with the generate endpoint?",
  "Ben had a red ball. He wanted to",
  "Why is the sky blue?",
];
const CTX_LEN = 256;

if (process.env["ORT_DISABLE_TELEMETRY"] !== "1") {
  // native code reads the environment of the process's start
  const env = { ...process.env, ORT_DISABLE_TELEMETRY: "1" };
  const { exitCode } = Bun.spawnSync([process.execPath, ...process.argv.slice(1)], {
    env,
    stdio: ["ignore", "inherit", "inherit"],
  });
  process.exit(exitCode);
}

const { values: flags, positionals } = parseArgs({
  options: { tokens: { type: "string", default: "64" }, raw: { type: "boolean", default: false } },
  allowPositionals: true,
});
const file = resolve(positionals[0] ?? join(import.meta.dir, "../models/hearth/hearth.gguf"));
const count = Number(flags.tokens);
const threads = physicalCores(); // more threads than cores make llama.cpp wait for itself
const gguf = openGguf(file);
const tokenizer = loadTokenizer(gguf.metadata, file);
const chat = (text: string): string => `<|im_start|>user\n${text}<|im_end|>\n<|im_start|>assistant\n`;
const prompts = PROMPTS.map((text) =>
  tokenizer.encode(flags.raw ? text : chat(text), { addSpecial: true, parseSpecial: true }),
);

const expected = await byLlama();
const precise = await byHearth(true);
const fast = await byHearth(false);
const agreements = PROMPTS.map((prompt, i) => ({
  prompt: prompt.slice(0, 40),
  tokens: expected[i]!.length,
  precise: agreement(precise[i]!.tokens, expected[i]!),
  default: agreement(fast[i]!.tokens, expected[i]!),
  gap: precise[i]!.gap?.toFixed(3) ?? "",
}));
console.table(agreements);
for (const mode of ["precise", "default"] as const) {
  console.log(`${mode}: ${agreements.filter((each) => each[mode] === each.tokens).length} of ${PROMPTS.length} equal`);
}
process.exit(0);

/** Number of tokens before the first difference. */
function agreement(ours: readonly number[], theirs: readonly number[]): number {
  const different = theirs.findIndex((token, i) => ours[i] !== token);
  return different < 0 ? theirs.length : different;
}

interface Answer {
  readonly tokens: readonly number[];
  /** Our logit of our first differing token minus our logit of llama.cpp's token. */
  readonly gap: number | undefined;
}

async function byHearth(precise: boolean): Promise<Answer[]> {
  const options = { ctxLen: CTX_LEN, slots: 1, precise, threads, cacheDir: undefined };
  const session = await onnxBackend.load(loadProgram(gguf), options);
  const answers: Answer[] = [];
  for (const [i, prompt] of prompts.entries()) answers.push(await continueGreedily(session, prompt, expected[i]!));
  session.close();
  return answers;
}

async function continueGreedily(session: Session, prompt: Int32Array, theirs: readonly number[]): Promise<Answer> {
  const answer: number[] = [];
  let gap: number | undefined;
  let tokens = prompt;
  for (let start = 0; answer.length < theirs.length; start += tokens.length, tokens = Int32Array.of(answer.at(-1)!)) {
    const logits = await session.run([{ slot: 0, start, tokens, logits: "last" }]);
    const token = argmax(logits);
    const other = theirs[answer.length]!;
    if (token !== other) gap ??= logits[token]! - logits[other]!;
    answer.push(token);
  }
  return { tokens: answer, gap };
}

/** llama.cpp's answers; each ends after `count` tokens or with the end of its text. */
async function byLlama(): Promise<number[][]> {
  const llama = await getLlama({ gpu: false, build: "never", logLevel: LlamaLogLevel.error });
  const model = await llama.loadModel({ modelPath: file });
  const context = await model.createContext({ contextSize: CTX_LEN, threads });
  const sequence = context.getSequence();
  const answers: number[][] = [];
  for (const prompt of prompts) {
    await sequence.clearHistory();
    const answer: number[] = [];
    const tokens = Array.from(prompt) as Token[]; // a branded number
    for await (const token of sequence.evaluate(tokens, { temperature: 0, yieldEogToken: true })) {
      if (answer.push(token) === count || tokenizer.endOfGeneration.has(token)) break;
    }
    answers.push(answer);
  }
  return answers;
}
