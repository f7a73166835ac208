/**
 * What do the grammars of calls cost a decode step? The same prompt, alternating: without tools, with tools that the
 * answer never calls, and inside a call that does not end. Medians of the time between two tokens, and of the processor
 * time of all threads, which other load changes less.
 *
 *   bun bench/call-cost.ts [--model FILE] [--backend NAME] [--answer 128] [--turns 9] [--tools 8]
 */
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { chooseBackend } from "../src/engine/backends/index.ts";
import { systemLoop } from "../src/engine/batching/event-loop.ts";
import { loadEngine } from "../src/engine/batching/load.ts";
import type { SequenceEvent } from "../src/engine/batching/sequence.ts";
import { mapFile } from "../src/engine/formats/files/map.ts";
import type { LazyGrammar } from "../src/engine/text/sampling/lazy-grammar.ts";
import { SAMPLING_DEFAULTS } from "../src/engine/text/sampling/options.ts";
import { lazyGrammar, makeCallWriter } from "../src/runtime/parse/call-grammar.ts";
import { toolFormats } from "../src/runtime/parse/index.ts";
import type { Tool } from "../src/runtime/requests/runtime.ts";

const { values: flags } = parseArgs({
  options: {
    model: { type: "string", default: join(import.meta.dir, "../models/hearth/hearth.gguf") },
    backend: { type: "string", default: "auto" },
    answer: { type: "string", default: "128" },
    turns: { type: "string", default: "9" },
    tools: { type: "string", default: "8" },
  },
});
const PROMPT = 64;
const FIRST_ID = 300; // ids from here on are not control tokens
const answerLen = Number(flags.answer);

/** Calls with a list that is longer than an answer. */
const lines = { type: "array", items: { type: "string" }, minItems: 900 };
const tools = Array.from({ length: Number(flags.tools) }, (_, i): Tool => ({
  type: "function",
  function: {
    name: `write_${i}`,
    parameters: { type: "object", properties: { path: { type: "string" }, lines }, required: ["lines"] },
  },
}));
const writer = makeCallWriter(tools, true);
const closed = lazyGrammar(writer, toolFormats.hermes.grammar(writer), { once: false })!; // there are tools
/** Any letter opens a call. */
const letters = Array.from("aeiou", (text) => ({ text, grammar: 0 }));
const WAYS: Readonly<Record<string, LazyGrammar | undefined>> = {
  "no tools": undefined,
  "no call open": closed,
  "inside a call": { ...closed, triggers: letters },
};

let onEvent: (event: SequenceEvent) => void = () => {};
const { engine, tokenizer, info } = await loadEngine(flags.model, {
  backend: await chooseBackend(flags.backend),
  ctxLen: PROMPT + answerLen + 1,
  slots: 1,
  chunk: 512,
  threads: 0,
  precise: false,
  cacheDir: undefined,
  loop: systemLoop(),
  open: mapFile,
  emit: (events) => events.forEach((event) => onEvent(event)),
  onEmbed() {},
});
interface Step {
  readonly ms: number;
  readonly cpuMs: number;
}
const steps = new Map(Object.keys(WAYS).map((way) => [way, [] as Step[]]));
let id = 0;
for (let turn = -1; turn < Number(flags.turns); turn++) {
  for (const [way, calls] of Object.entries(WAYS)) {
    const step = await decode(turn, calls);
    if (turn >= 0) steps.get(way)!.push(step); // each way has a list; the first turn is warm-up
  }
}
/** A median. */
const of = (way: string, key: keyof Step): number => median((steps.get(way) ?? []).map((step) => step[key]));
const load = loadavg()[0]!.toFixed(1);
console.log(
  `${info.arch} on ${info.backend}, ${cpus()[0]?.model}, load ${load}, ${flags.turns} turns, ${answerLen} tokens`,
);
for (const way of steps.keys()) {
  const cells = (["ms", "cpuMs"] as const).map((key) => {
    const [step, base] = [of(way, key), of("no tools", key)];
    return `${step.toFixed(3)} ms, ${((step / base - 1) * 100).toFixed(1).padStart(5)} %`;
  });
  console.log(`${way.padEnd(14)} ${cells[0]}   processor ${cells[1]}`);
}
process.exit(0);

/** A step of one answer. */
function decode(turn: number, calls: LazyGrammar | undefined): Promise<Step> {
  const { promise, resolve, reject } = Promise.withResolvers<Step>();
  let before = process.cpuUsage();
  onEvent = (event) => {
    if (event.kind === "error") return reject(new Error(event.message));
    if (event.kind === "prompt") before = process.cpuUsage();
    if (event.kind !== "done") return;
    const { evalNs, evalCount } = event.statistics;
    const { user, system } = process.cpuUsage(before);
    const count = Math.max(1, evalCount - 1);
    resolve({ ms: evalNs / 1e6 / count, cpuMs: (user + system) / 1e3 / count });
  };
  const ids = tokenizer.vocabSize - FIRST_ID;
  const prompt = Int32Array.from({ length: PROMPT }, (_, i) => FIRST_ID + ((i * 7919 + (turn + 1) * 104_729) % ids));
  const options = { ...SAMPLING_DEFAULTS, seed: turn + 2, ignore_eos: true, num_predict: answerLen };
  void engine.submit({
    id: id++,
    prompt: [{ kind: "ids", ids: prompt }],
    options,
    shift: false,
    ...(calls ? { calls } : {}),
  });
  return promise;
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? Number.NaN;
}
