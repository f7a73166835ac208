/** Traces turns and their requests to models, below the span of the accepted request, whichever node runs the turn. */
import { makeAgent, type Agent } from "../agent/agent.ts";
import type { TurnParts } from "../agent/turn.ts";
import { messageOf } from "../../base/index.ts";
import type { Store } from "../database/store.ts";
import { type Attributes, parseTraceparent, type Trace, type Tracer } from "../../base/tracing.ts";
import { traceOfRun } from "../hooks/queue/deliveries/queries.ts";
import type { ChatRuntime, InferenceEvent } from "../../runtime/portable.ts";

/** An agent whose turns are spans, if there is a tracer. */
export function makeTracedAgent(parts: TurnParts, tracer: Tracer | undefined): Agent {
  if (!tracer) return makeAgent(parts);
  const runtime = tracedRuntime(parts.runtime, tracer);
  return tracedAgent(makeAgent({ ...parts, runtime }), { tracer, store: parts.store });
}

const tracedAgent = (agent: Agent, { tracer, store }: { tracer: Tracer; store: Store }): Agent => ({
  async run(request) {
    const parent = await parentOf(store, request.runId);
    const span = tracer.begin(parent);
    const result = await agent.run({ ...request, trace: span.trace });
    const { promptTokens, completionTokens, rounds, toolCalls } = result.usage;
    tracer.end(span, {
      name: "agent turn",
      kind: "internal",
      attributes: {
        "hearth.run.id": request.runId,
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.request.model": result.model,
        "gen_ai.usage.input_tokens": promptTokens,
        "gen_ai.usage.output_tokens": completionTokens,
        "hearth.turn.rounds": rounds,
        "hearth.turn.tool_calls": toolCalls,
      },
      error: result.status === "ok" ? undefined : (result.error ?? result.status),
    });
    return result;
  },
});

/** A turn that no request caused, or whose database is down, begins a trace. */
async function parentOf(store: Store, runId: string): Promise<Trace | undefined> {
  const headers = await store.read(() => traceOfRun(runId)).catch(() => undefined);
  return parseTraceparent(headers);
}

/** A runtime whose chats are spans, continued by a remote server. */
const tracedRuntime = (runtime: ChatRuntime, tracer: Tracer): ChatRuntime => ({
  loaded: () => runtime.loaded(),
  countTokens: (request) => runtime.countTokens(request),
  async *chat(request) {
    const span = tracer.begin(request.trace);
    let error: string | undefined;
    let done: Attributes = {};
    try {
      for await (const event of runtime.chat({ ...request, trace: span.trace })) {
        if (event.kind === "done") done = doneAttributes(event);
        yield event;
      }
    } catch (thrown) {
      error = messageOf(thrown);
      throw thrown;
    } finally {
      const attributes = { "gen_ai.operation.name": "chat", "gen_ai.request.model": request.model, ...done };
      tracer.end(span, { name: `chat ${request.model}`, kind: "client", attributes, error });
    }
  },
});

function doneAttributes({ reason, statistics }: Extract<InferenceEvent, { kind: "done" }>): Attributes {
  return {
    "gen_ai.response.finish_reasons": [reason],
    "gen_ai.usage.input_tokens": statistics?.promptEvalCount,
    "gen_ai.usage.output_tokens": statistics?.evalCount,
  };
}
