/**
 * What generate and chat have in common: a runner is leased, asked in one phase or several, and each of its events
 * becomes what the client is told.
 */
import type { GenerateMessage } from "../engine/index.ts";
import { lease, modelOf, refuseEmbedder, weightsOf, type Loaded, type RuntimeParts } from "./lease.ts";
import type { RunnerClient, RunnerEvent } from "./runner-client.ts";
import type { InferenceEvent, InferenceRequest } from "./runtime.ts";

/** One request to a runner, and how its events are read. */
export interface Phase {
  readonly request: Omit<GenerateMessage, "kind" | "id"> & { readonly id?: number };
  read(event: RunnerEvent): readonly InferenceEvent[];
  /** Whether the rest of what it says is not wanted. */
  isOver?(): boolean;
  /** What is asked once this has ended. */
  next?(): Phase | undefined;
  /** A failure in the client's terms. */
  explain?(error: unknown): unknown;
}

export interface Task {
  readonly request: InferenceRequest;
  readonly name: "chat" | "generate";
  /** Nothing is asked: the model is loaded, or unloaded. */
  readonly isEmpty: boolean;
  /** It is unloaded at once, and requests on it fail. */
  readonly isForced?: boolean;
  /** Throws what the loaded model cannot do. */
  begin(loaded: Loaded): Promise<Phase>;
}

/** The last event is `done`. */
export async function* infer(parts: RuntimeParts, task: Task): AsyncGenerator<InferenceEvent, void, void> {
  const { request, isEmpty, isForced } = task;
  const model = await modelOf(parts, request);
  if (isEmpty && request.keepAliveMs === 0) {
    parts.pool.unload(weightsOf(model), isForced);
    yield { kind: "done", reason: "unload" };
    return;
  }
  for (let isLast = false; ; isLast = true) {
    const loaded = await lease(parts, model, request);
    const { runner } = loaded.lease;
    let phase: Phase | undefined;
    const holding: number[] = [];
    try {
      refuseEmbedder(loaded, { model: request.model, task: task.name });
      if (isEmpty) yield { kind: "done", reason: "load" };
      else phase = await task.begin(loaded);
      for (; phase; phase = phase.next?.()) {
        if (phase.request.holds && phase.request.id !== undefined) holding.push(phase.request.id);
        for await (const event of runner.generate(phase.request, request.signal)) {
          for (const each of phase.read(event)) yield each;
          if (phase.isOver?.()) break;
        }
      }
      return;
    } catch (error) {
      // a runner that died idle never heard the request: nothing was said of it yet
      if (isLast || !loaded.lease.wasUnheard()) throw phase?.explain?.(error) ?? error;
    } finally {
      forgetAll(runner, holding);
      loaded.lease.release();
    }
    await loaded.lease.ended;
  }
}

function forgetAll(runner: RunnerClient, ids: readonly number[]): void {
  for (const id of ids) runner.forget(id);
}
