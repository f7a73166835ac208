/**
 * The common part of generate and chat: leases a runner, asks it in one or several passes, and turns its events into
 * the client's.
 */
import type { GenerateMessage } from "../../engine/index.ts";
import { lease, modelOf, refuseEmbedder, weightsOf, type Loaded, type RuntimeParts } from "./lease.ts";
import type { RunnerClient, RunnerEvent } from "../processes/runner-client.ts";
import type { InferenceEvent, InferenceRequest } from "../requests/runtime.ts";

/** One request to a runner, and the reader of its events. */
export interface Phase {
  readonly request: Omit<GenerateMessage, "kind" | "id"> & { readonly id?: number };
  read(event: RunnerEvent): readonly InferenceEvent[];
  /** Returns whether the rest of the output is unwanted. */
  isOver?(): boolean;
  /** The next pass, once this one has ended. */
  next?(): Phase | undefined;
  /** Converts a failure to the client's terms. */
  explain?(error: unknown): unknown;
}

export interface Task {
  readonly request: InferenceRequest;
  readonly name: "chat" | "generate";
  /** A request without a prompt: it loads or unloads the model. */
  readonly isEmpty: boolean;
  /** Unloads at once; running requests fail. */
  readonly isForced?: boolean;
  /** Throws if the loaded model cannot do it. */
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
      // a runner that died idle never received the request, so a repeat is safe
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
