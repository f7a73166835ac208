/**
 * The common part of generate and chat: leases a runner, sends it one or several requests, and turns its events into
 * the client's.
 */
import type { GenerateMessage } from "../../engine/index.ts";
import { lease, modelOf, refuseEmbedder, weightsOf, type Loaded, type RuntimeParts } from "./lease.ts";
import type { RunnerClient, RunnerEvent } from "../processes/runner-client.ts";
import type { InferenceEvent, InferenceRequest } from "../requests/runtime.ts";

/** One request to a runner, and the reader of its events. */
export interface GenerationPass {
  readonly request: Omit<GenerateMessage, "kind" | "id"> & { readonly id?: number };
  read(event: RunnerEvent): readonly InferenceEvent[];
  /** Returns whether the rest of the output is unwanted. */
  isOver?(): boolean;
  /** The next pass, once this one has ended. */
  next?(): GenerationPass | undefined;
  /** Converts a failure to the client's terms. */
  explain?(error: unknown): unknown;
}

export interface GenerationTask {
  readonly request: InferenceRequest;
  readonly name: "chat" | "generate";
  /** A request without a prompt: it loads or unloads the model. */
  readonly isEmpty: boolean;
  /** Unloads at once; running requests fail. */
  readonly isForced?: boolean;
  /** Throws if the loaded model cannot do it. */
  begin(loaded: Loaded): Promise<GenerationPass>;
}

/** The last event is `done`. */
export async function* infer(parts: RuntimeParts, task: GenerationTask): AsyncGenerator<InferenceEvent, void, void> {
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
    let pass: GenerationPass | undefined;
    const holding: number[] = [];
    try {
      refuseEmbedder(loaded, { model: request.model, task: task.name });
      if (isEmpty) yield { kind: "done", reason: "load" };
      else pass = await task.begin(loaded);
      for (let isFirst = true; pass; pass = pass.next?.(), isFirst = false) {
        if (pass.request.holds && pass.request.id !== undefined) holding.push(pass.request.id);
        const { promptLogprobs: _, ...later } = pass.request; // its tokens are known after the first pass
        for await (const event of runner.generate(isFirst ? pass.request : later, request.signal)) {
          for (const each of pass.read(event)) yield each;
          if (pass.isOver?.()) break;
        }
      }
      return;
    } catch (error) {
      // a runner that died idle never received the request, so a repeat is safe
      if (isLast || !loaded.lease.wasSilent()) throw pass?.explain?.(error) ?? error;
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
