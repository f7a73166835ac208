/** A runtime whose answers are counted, whichever API asked for them. */
import type { InferenceEvent, Runtime } from "../runtime/runtime.ts";
import type { Metrics } from "./metrics.ts";

export function metered(runtime: Runtime, metrics: Metrics): Runtime {
  return {
    ...runtime,
    generate: (request) => counted(runtime.generate(request), { model: request.model, metrics }),
    chat: (request) => counted(runtime.chat(request), { model: request.model, metrics }),
    async embed(request) {
      const result = await runtime.embed(request);
      metrics.answer(request.model, { promptEvalCount: result.promptEvalCount, evalCount: 0, evalNs: 0 });
      return result;
    },
  };
}

async function* counted(
  events: AsyncGenerator<InferenceEvent, void, void>,
  { model, metrics }: { model: string; metrics: Metrics },
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
