/** Counts answers of all APIs, by the models' names in the store. */
import type { InferenceEvent, NamedModel, Runtime } from "../../runtime/portable.ts";
import type { Metrics } from "./metrics.ts";

const NO_ANSWER = { promptCachedCount: 0, evalCount: 0, evalNs: 0 };

/** A runtime that counts embeddings and rankings. */
export const metered = (runtime: Runtime, metrics: Metrics): Runtime => ({
  ...runtime,
  async embed(request) {
    const result = await runtime.embed(request);
    metrics.answer(nameOf(request), { ...NO_ANSWER, promptEvalCount: result.promptEvalCount });
    return result;
  },
  async rank(request) {
    const result = await runtime.rank(request);
    metrics.answer(nameOf(request), { ...NO_ANSWER, promptEvalCount: result.promptEvalCount });
    return result;
  },
});

/** Counts the events of one answer, which begins now. */
export function counter(
  metrics: Metrics,
  request: NamedModel,
): (event: Exclude<InferenceEvent, { kind: "prompt" | "progress" | "promptLogprobs" }>) => void {
  const model = nameOf(request);
  const startedMs = performance.now();
  let isFirst = true;
  return (event) => {
    if (event.kind === "done") {
      if (event.statistics) metrics.answer(model, event.statistics);
    } else if (isFirst) {
      isFirst = false;
      metrics.firstToken(model, (performance.now() - startedMs) / 1000);
    }
  };
}

/** One name for all spellings: with or without its tag, in any case. */
const nameOf = ({ ref }: NamedModel): string => ref?.displayName ?? "other";
