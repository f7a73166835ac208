/**
 * Prompt-lookup drafting: tokens per second with and without it, for an answer that repeats its prompt with an
 * occasional changed word, like an answer to "edit this text".
 *
 *   bun bench/lookup.ts FILE.gguf [--tokens 400] [--every 25] [--prompt 600] [--rounds 3] [--record]
 *
 * The passes are the model's own; its answers are scripted, since random weights edit nothing: in each row the logit of
 * the edited text's next token becomes the largest. With --own the model answers. Other work on the machine slows one
 * side or the other: the ratio of the processor time is shown too.
 */
import { parseArgs } from "node:util";
import { loadEngine, type LoadedEngine } from "../src/engine/batching/load.ts";
import type { SequenceEvent } from "../src/engine/batching/sequence.ts";
import type { Backend, Rows, Session } from "../src/engine/program/backend.ts";
import { simdBackend } from "../src/engine/backends/host/simd.ts";
import { systemLoop } from "../src/engine/batching/event-loop.ts";
import { mapFile } from "../src/engine/formats/files/map.ts";
import { SAMPLING_DEFAULTS } from "../src/engine/text/sampling/options.ts";
import { writeRecord } from "./report/record.ts";
import { median } from "./streamed.ts";

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    tokens: { type: "string", default: "400" },
    every: { type: "string", default: "25" },
    prompt: { type: "string", default: "600" },
    rounds: { type: "string", default: "3" },
    own: { type: "boolean", default: false },
    record: { type: "boolean", default: false },
  },
});
const [file] = positionals;
if (!file) throw new Error("usage: bun bench/lookup.ts FILE.gguf [--tokens N] [--every N] [--prompt N] [--own]");
const [tokens, every, length] = [Number(flags.tokens), Number(flags.every), Number(flags.prompt)];

const prompt = Int32Array.from({ length }, (_, i) => 300 + (((i * 7919 + (i >> 3) * 131) % 20_011) % 700));
const edited = prompt.map((id, i) => (i % every === every - 1 ? 1000 + (i % 97) : id));

/** The model, with scripted next tokens. */
function scripted(session: Session, vocabSize: number): Session {
  return {
    ...session,
    async run(batch: readonly Rows[]) {
      const logits = await session.run(batch);
      let row = 0;
      for (const { start, tokens: ids, logits: wanted } of batch) {
        const first = wanted === "all" ? 0 : ids.length - 1;
        for (let i = first; wanted !== "none" && i < ids.length; i++, row++) {
          logits[row * vocabSize + edited[(start + i + 1 - length) % length]!] = 1e4;
        }
      }
      return logits;
    },
  };
}

const backendOf = (guesses: boolean): Backend => ({
  ...simdBackend,
  async load(program, options) {
    const session = { ...(await simdBackend.load(program, options)) };
    const chosen = flags.own ? session : scripted(session, program.shape.vocabSize);
    return guesses ? chosen : { ...chosen, verifies: false };
  },
});

async function answer({ engine }: LoadedEngine, listen: (event: (events: readonly SequenceEvent[]) => void) => void) {
  const { promise, resolve, reject } = Promise.withResolvers<{ rate: number; cpuMs: number; ids: Int32Array }>();
  let firstMs = 0;
  let used = process.cpuUsage();
  listen((events) => {
    for (const event of events) {
      if (event.kind === "prompt") [firstMs, used] = [performance.now(), process.cpuUsage()];
      if (event.kind === "error") reject(new Error(event.message));
      if (event.kind !== "done") continue;
      const seconds = (performance.now() - firstMs) / 1000;
      const { user, system } = process.cpuUsage(used);
      const tokens = event.statistics.evalCount - 1;
      resolve({ rate: tokens / seconds, cpuMs: (user + system) / 1000 / tokens, ids: event.tokens });
    }
  });
  const options = { ...SAMPLING_DEFAULTS, temperature: 0, repeat_penalty: 1, num_predict: tokens };
  await engine.submit({ id: 1, prompt: [{ kind: "ids", ids: prompt }], options, shift: true });
  return promise;
}

const rates = { with: [] as number[], without: [] as number[] };
const cpuMs = { with: [] as number[], without: [] as number[] };
let answers: Int32Array[] = [];
for (let round = 0; round < Number(flags.rounds); round++) {
  answers = [];
  for (const side of ["without", "with"] as const) {
    let hear: (events: readonly SequenceEvent[]) => void = () => {};
    const loaded = await loadEngine(file, {
      backend: backendOf(side === "with"),
      loop: systemLoop(),
      open: mapFile,
      ctxLen: length + tokens + 64,
      slots: 1,
      chunk: 512,
      threads: 0,
      precise: false,
      cacheDir: undefined,
      emit: (events) => hear(events),
      onEmbed: () => {},
    });
    const { ids, ...took } = await answer(loaded, (listener) => (hear = listener));
    rates[side].push(took.rate);
    cpuMs[side].push(took.cpuMs);
    answers.push(ids);
    await loaded.engine.close();
  }
  const same = answers[0]!.join() === answers[1]!.join();
  const [without, guessed] = [rates.without.at(-1)!, rates.with.at(-1)!];
  const shareOfCpu = cpuMs.without.at(-1)! / cpuMs.with.at(-1)!;
  console.log(
    `round ${round + 1}: ${without.toFixed(1)} tok/s without, ${guessed.toFixed(1)} with guesses: ` +
      `${(guessed / without).toFixed(2)} times, ${shareOfCpu.toFixed(2)} in processor time; ` +
      (same ? "the same tokens" : "OTHER TOKENS"),
  );
}
const ratios = rates.with.map((rate, i) => rate / rates.without[i]!);
const ratio = median(ratios);
if (flags.record) {
  const goal = { of: "value", atLeast: 1.5 } as const;
  const what = `${tokens} tokens, one of ${every} edited`;
  const figures = [{ what, measure: "decode", unit: "times that without guesses", ours: ratios, goal }];
  writeRecord("lookup", { title: "Guesses from the prompt: an edited text", figures });
}
console.log(`median: ${ratio.toFixed(2)} times (at least 1.5 is wanted)`);
process.exit(0);
