/** A runtime whose answers are counted, whichever API asked for them, by the names that models have in the store. */
import type { InferenceEvent, Runtime } from "../runtime/runtime.ts";
import type { Store } from "../store/store.ts";
import type { Metrics } from "./metrics.ts";

interface Meter {
  readonly metrics: Metrics;
  readonly store: Pick<Store, "find">;
}

export function metered(runtime: Runtime, meter: Meter): Runtime {
  return {
    ...runtime,
    generate: (request) => counted(runtime.generate(request), request.model, meter),
    chat: (request) => counted(runtime.chat(request), request.model, meter),
    async embed(request) {
      const model = nameOf(meter, request.model);
      const { promptEvalCount, ...result } = await runtime.embed(request);
      meter.metrics.answer(await model, { promptEvalCount, evalCount: 0, evalNs: 0 });
      return { ...result, promptEvalCount };
    },
  };
}

async function* counted(
  events: AsyncGenerator<InferenceEvent, void, void>,
  asked: string,
  meter: Meter,
): AsyncGenerator<InferenceEvent, void, void> {
  const startedMs = performance.now();
  const model = nameOf(meter, asked); // now: it may be deleted before the answer is complete
  let isFirst = true;
  for await (const event of events) {
    if (event.kind === "done") {
      if (event.statistics) meter.metrics.answer(await model, event.statistics);
    } else if (isFirst) {
      isFirst = false;
      meter.metrics.firstToken(await model, (performance.now() - startedMs) / 1000);
    }
    yield event;
  }
}

/** One name however it was written: with or without its tag, in any case. */
async function nameOf({ store }: Meter, asked: string): Promise<string> {
  const found = await store.find(asked).catch(() => undefined); // what is wrong with it, the runtime says
  return found?.displayName ?? "other";
}
