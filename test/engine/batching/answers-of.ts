/** A model file's answers through an engine, with drafts and without, on a clock that counts runs. */
import type { Backend, Rows, Session } from "../../../src/engine/program/backend.ts";
import { systemLoop } from "../../../src/engine/batching/event-loop.ts";
import { loadEngine } from "../../../src/engine/batching/load.ts";
import type { SequenceEvent } from "../../../src/engine/batching/sequence.ts";
import { mapFile } from "../../../src/engine/formats/files/map.ts";
import { VOCAB } from "../architectures/models.ts";
import { SAMPLING_DEFAULTS, type SamplingOptions } from "../../../src/engine/text/sampling/options.ts";

export interface Ask {
  readonly ids: readonly number[];
  readonly options?: Partial<SamplingOptions>;
}

type Batch = readonly Pick<Rows, "slot" | "start" | "tokens" | "drafted">[];

/** Cost of a run of the model, and of a run of another session. */
const COSTS = { model: 20, other: 1 };

interface Setup {
  readonly backend: Backend;
  readonly file: string;
  readonly drafts: boolean;
  /** Changes the model's logits. */
  readonly change?: (logits: Float32Array, batch: readonly Rows[]) => Float32Array;
}

/** The answers to groups of concurrent prompts, one group after the other, and the model's batches. */
export async function answersOf(
  { backend, file, drafts, change = (logits) => logits }: Setup,
  asked: readonly (readonly Ask[])[],
): Promise<{ said: number[][]; batches: Batch[] }> {
  const batches: Batch[] = [];
  let now = 0;
  let loads = 0;
  const load: Backend["load"] = async (program, options) => {
    const { slices: _, ...session } = await backend.load(program, options); // so that all logits are visible
    if (loads++ > 0) return costing(session, () => (now += COSTS.other));
    const counted = costing(session, (batch) => {
      batches.push(batch);
      now += COSTS.model;
    });
    const run: Session["run"] = async (batch) => change(await counted.run(batch), batch);
    return { ...counted, run, ...(drafts ? {} : { verifies: false }) };
  };
  const done = new Map<number, (event: SequenceEvent) => void>();
  const { engine } = await loadEngine(file, {
    backend: { ...backend, load },
    loop: { ...systemLoop(), nowNs: () => now },
    open: mapFile,
    ctxLen: 256,
    slots: 2,
    chunk: 64,
    threads: 1,
    precise: false,
    cacheDir: undefined,
    cacheMemory: 1e8,
    emit: (events) =>
      events.forEach((event) => event.kind !== "text" && event.kind !== "prompt" && done.get(event.id)?.(event)),
    onEmbed: () => {},
  });
  let id = 0;
  const ask = ({ ids, options = {} }: Ask): Promise<number[]> => {
    const own = ++id;
    const wanted = { ...SAMPLING_DEFAULTS, temperature: 0, repeat_penalty: 1, num_predict: 60, ...options };
    const prompt = [{ kind: "ids" as const, ids: Int32Array.from(ids) }];
    return new Promise((resolve, reject) => {
      done.set(own, (event) => {
        if (event.kind === "done") resolve([...event.tokens]);
        else if (event.kind === "error") reject(new Error(event.message));
      });
      void engine.submit({ id: own, prompt, options: wanted, shift: true });
    });
  };
  const said: number[][] = [];
  for (const together of asked) said.push(...(await Promise.all(together.map(ask))));
  await engine.close();
  return { said, batches };
}

/** Reports every run. */
const costing = (session: Session, note: (batch: Batch) => void): Session => ({
  ...session,
  run(batch) {
    note(batch);
    return session.run(batch);
  },
  states(batch, pause) {
    note(batch);
    return session.states(batch, pause);
  },
  ...(session.runWithStates && {
    runWithStates(batch) {
      note(batch);
      return session.runWithStates!(batch);
    },
  }),
});

/** Logits that lean to a text which repeats itself but for every ninth token. */
export function leaning(logits: Float32Array, batch: readonly Rows[], leans = (_slot: number) => true): Float32Array {
  let row = 0;
  for (const { slot, start, tokens, logits: wanted } of batch) {
    for (let i = wanted === "all" ? 0 : tokens.length - 1; wanted !== "none" && i < tokens.length; i++, row++) {
      if (!leans(slot)) continue;
      const at = start + i;
      logits[row * VOCAB + (at % 9 === 0 ? 5 + (at % 41) : 10 + (at % 7))]! += 24;
    }
  }
  return logits;
}
