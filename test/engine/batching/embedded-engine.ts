/** An engine on the embedded model, and its answers. */
import { resolve } from "node:path";
import type { Backend } from "../../../src/engine/program/backend.ts";
import { systemLoop } from "../../../src/engine/batching/event-loop.ts";
import { loadEngine, type LoadedEngine } from "../../../src/engine/batching/load.ts";
import type { SequenceEvent, SequenceRequest } from "../../../src/engine/batching/sequence.ts";
import { mapFile } from "../../../src/engine/formats/files/map.ts";
import { SAMPLING_DEFAULTS, type SamplingOptions } from "../../../src/engine/text/sampling/options.ts";

export const EMBEDDED = resolve(import.meta.dir, "../../../models/hearth/hearth.gguf");

interface Opened extends LoadedEngine {
  /** Runs of the model, and of its draft model. */
  readonly runs: readonly number[];
  ask(text: string, options: Partial<SamplingOptions>, more?: Partial<SequenceRequest>): Promise<string>;
}

/** @param costs of a run of the model, and of its draft model, on the engine's clock */
export async function open(
  backend: Backend,
  draft: string | undefined,
  costs: readonly number[],
  more: Partial<Pick<Parameters<typeof loadEngine>[1], "cacheMemory" | "open" | "vision">> = {},
): Promise<Opened> {
  let now = 0;
  const runs: number[] = [];
  const load: Backend["load"] = async (program, options) => {
    const session = await backend.load(program, options);
    const which = runs.push(0) - 1;
    const run: typeof session.run = (batch) => {
      runs[which]!++;
      now += costs[which]!;
      return session.run(batch);
    };
    return { ...session, run };
  };
  const listeners = new Map<number, (event: SequenceEvent) => void>();
  const loaded = await loadEngine(EMBEDDED, {
    backend: { ...backend, load },
    loop: { ...systemLoop(), nowNs: () => now },
    open: mapFile,
    draft,
    ctxLen: 256,
    slots: 2,
    chunk: 64,
    threads: 1,
    precise: false,
    cacheDir: undefined,
    ...more,
    emit: (events) => events.forEach((event) => listeners.get(event.id)?.(event)),
    onEmbed: () => {},
  });
  let last = 0;
  const ask: Opened["ask"] = (text, options, more = {}) => {
    const { promise, resolve: done } = Promise.withResolvers<string>();
    const id = ++last;
    let said = "";
    listeners.set(id, (event) => {
      if (event.kind === "text") said += event.text;
      else if (event.kind !== "prompt") done(event.kind === "error" ? event.message : said);
    });
    const ids = loaded.tokenizer.encode(text, { addSpecial: true, parseSpecial: true });
    const wanted = { ...SAMPLING_DEFAULTS, temperature: 0, num_predict: 40, ...options };
    void loaded.engine.submit({ id, prompt: [{ kind: "ids", ids }], options: wanted, shift: true, ...more });
    return promise;
  };
  return { ...loaded, runs, ask };
}
