/** A runtime whose answers are counted, whichever API asked for them, by the names that models have in the store. */
import type { InferenceEvent, NamedModel, Runtime } from "../runtime/runtime.ts";
import type { Metrics } from "./metrics.ts";

export function metered(runtime: Runtime, metrics: Metrics): Runtime {
  return {
    ...runtime,
    generate: (request) => counted(runtime.generate(request), nameOf(request), metrics),
    chat: (request) => counted(runtime.chat(request), nameOf(request), metrics),
    async embed(request) {
      const result = await runtime.embed(request);
      metrics.answer(nameOf(request), { promptEvalCount: result.promptEvalCount, evalCount: 0, evalNs: 0 });
      return result;
    },
  };
}

async function* counted(
  events: AsyncGenerator<InferenceEvent, void, void>,
  model: string,
  metrics: Metrics,
): AsyncGenerator<InferenceEvent, void, void> {
  const startedMs = performance.now();
  let isFirst = true;
  for await (const event of events) {
    if (event.kind === "done") {
      if (event.statistics) metrics.answer(model, event.statistics);
    } else if (isFirst) {
      isFirst = false;
      metrics.firstToken(model, (performance.now() - startedMs) / 1000);
    }
    yield event;
  }
}

/** One name however it was written: with or without its tag, in any case. */
const nameOf = ({ ref }: NamedModel): string => ref?.displayName ?? "other";
