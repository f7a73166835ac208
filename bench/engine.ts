/**
 * Throughput of `Engine`, on any backend: tokens per second of a prompt and of an answer, compared with the session's
 * runs alone, alternately, so that other load affects both alike; medians. The engine's overhead per step (scheduling,
 * sampling, text, the event loop) is the time between the runs of its own session.
 *
 *   ORT_DISABLE_TELEMETRY=1 bun bench/engine.ts [--model FILE] [--backend NAME] [--streams 1] [--prompt 256]
 *     [--answer 64] [--turns 5] [--threads 0]
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { chooseBackend } from "../src/engine/backends/index.ts";
import type { Backend, Rows, Session } from "../src/engine/program/backend.ts";
import { systemLoop } from "../src/engine/batching/event-loop.ts";
import { loadEngine } from "../src/engine/batching/load.ts";
import { mapFile } from "../src/engine/formats/files/map.ts";
import type { SequenceEvent } from "../src/engine/batching/sequence.ts";
import { SAMPLING_DEFAULTS } from "../src/engine/text/sampling/options.ts";

const { values: flags } = parseArgs({
  options: {
    model: { type: "string", default: join(import.meta.dir, "../models/hearth/hearth.gguf") },
    backend: { type: "string", default: "auto" },
    streams: { type: "string", default: "1" },
    prompt: { type: "string", default: "256" },
    answer: { type: "string", default: "64" },
    turns: { type: "string", default: "5" },
    threads: { type: "string", default: "0" },
  },
});
const [streams, promptLen, answerLen] = [Number(flags.streams), Number(flags.prompt), Number(flags.answer)];
const CHUNK = 512;
/** Ids from here on are not control tokens. */
const FIRST_ID = 300;

/** Milliseconds. */
interface Turn {
  /** Time of the prompt. */
  readonly prefill: number;
  /** Time of a decode step: one token of each stream. */
  readonly step: number;
  /** Time between the end of a run and the start of the next. */
  readonly between: number;
}

const chosen = await chooseBackend(flags.backend);
let session: Session | undefined;
const backend: Backend = { ...chosen, load: async (...args) => (session = watched(await chosen.load(...args))) };
const gaps: number[] = [];
let endedMs = 0;
let onEvent: (event: SequenceEvent) => void = () => {};
const { engine, tokenizer, info } = await loadEngine(flags.model, {
  backend,
  ctxLen: promptLen + answerLen + 1,
  slots: streams,
  chunk: CHUNK,
  threads: Number(flags.threads),
  precise: false,
  cacheDir: undefined,
  loop: systemLoop(),
  open: mapFile,
  emit: (events) => events.forEach((event) => onEvent(event)),
  onEmbed() {},
});

const turns: { engine: Turn; alone: Turn }[] = [];
for (let turn = -1; turn < Number(flags.turns); turn++) {
  const both = { engine: await throughEngine(turn + 1), alone: await throughSession(turn + 1) };
  if (turn >= 0) turns.push(both); // the first turn is warm-up
}
console.log(`${info.arch} on ${info.backend} (${info.device}), ${streams} at once, ${flags.turns} turns, medians`);
console.table({
  engine: summary(turns.map(({ engine }) => engine)),
  "session alone": summary(turns.map(({ alone }) => alone)),
});
process.exit(0);

/** All streams at once. Counts steps from the first token of the last stream to its last one. */
async function throughEngine(turn: number): Promise<Turn> {
  const { promise, resolve, reject } = Promise.withResolvers<Turn>();
  let [open, prefill] = [streams, 0];
  onEvent = (event) => {
    if (event.kind === "error") return reject(new Error(event.message));
    if (event.kind !== "done") return;
    const { promptEvalNs, evalNs, evalCount } = event.statistics;
    prefill += promptEvalNs / 1e6;
    if (--open === 0) {
      const step = evalNs / 1e6 / Math.max(1, evalCount - 1);
      resolve({ prefill: prefill / streams, step, between: median(gaps) });
    }
  };
  const options = { ...SAMPLING_DEFAULTS, temperature: 0, num_predict: answerLen };
  gaps.length = 0;
  for (let i = 0; i < streams; i++) {
    const id = turn * streams + i;
    void engine.submit({ id, prompt: [{ kind: "ids", ids: promptOf(id) }], options, shift: false });
  }
  return promise;
}

/** The same runs without an engine. */
async function throughSession(turn: number): Promise<Turn> {
  const { topK } = session!; // it was loaded
  const all = Array.from({ length: streams }, (_, slot) => ({ slot, tokens: promptOf(1000 + turn * streams + slot) }));
  gaps.length = 0;
  const startedMs = performance.now();
  for (const { slot, tokens } of all) {
    for (let start = 0; start < promptLen; start += CHUNK) {
      const logits = start + CHUNK >= promptLen ? "last" : "none";
      await session!.run([{ slot, start, tokens: tokens.subarray(start, start + CHUNK), logits }]);
    }
  }
  const prefilledMs = performance.now();
  const request = { k: 1, masked: new Int32Array() };
  for (let i = 0; i < answerLen; i++) {
    const batch = all.map(({ slot, tokens }): Rows => {
      const at = i % promptLen;
      return { slot, start: promptLen + i, tokens: tokens.subarray(at, at + 1), logits: "last" };
    });
    await (topK ? topK.run(batch.map((rows) => ({ ...rows, request }))) : session!.run(batch));
  }
  const prefill = (prefilledMs - startedMs) / streams;
  return { prefill, step: (performance.now() - prefilledMs) / answerLen, between: median(gaps) };
}

/** Records the time between its runs. */
function watched(loaded: Session): Session {
  const watch = <A extends unknown[], R>(run: (...args: A) => Promise<R>) => {
    return async (...args: A): Promise<R> => {
      gaps.push(performance.now() - endedMs);
      const result = await run(...args);
      endedMs = performance.now();
      return result;
    };
  };
  Object.defineProperty(loaded, "run", { value: watch(loaded.run.bind(loaded)) });
  const { topK } = loaded;
  if (topK) Object.defineProperty(loaded, "topK", { value: { ...topK, run: watch(topK.run.bind(topK)) } });
  return loaded;
}

/** Never repeats, so that no slot has a prefix of it. */
function promptOf(seed: number): Int32Array {
  const ids = tokenizer.vocabSize - FIRST_ID;
  return Int32Array.from({ length: promptLen }, (_, i) => FIRST_ID + ((i * 7919 + seed * 104_729) % ids));
}

function summary(each: readonly Turn[]): Record<string, string> {
  const of = (key: keyof Turn): number => median(each.map((turn) => turn[key]));
  const [prefill, step] = [of("prefill"), of("step")];
  return {
    "prefill, tok/s": ((promptLen / prefill) * 1000).toFixed(0),
    "decode, tok/s": ((streams / step) * 1000).toFixed(1),
    "ms a step": step.toFixed(3),
    "of that between runs": of("between").toFixed(3),
  };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
