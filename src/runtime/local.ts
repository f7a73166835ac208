/** The runtime of this machine: models of the store, in the pool's runner processes. */
import type { CallGrammars } from "./inference/call-grammars.ts";
import { adaptersOver } from "../library/index.ts";
import type { Store } from "../library/portable.ts";
import { listAdapters, scaleAdapters, type Adapters } from "./inference/adapters.ts";
import { countTokens, renderChat, runChat } from "./inference/chat.ts";
import { runEmbed } from "./inference/embed.ts";
import { renderQuestion, runGenerate } from "./inference/generate.ts";
import { weightsOf, type RuntimeParts } from "./inference/lease.ts";
import type { PoolOptions } from "./processes/load-message.ts";
import { Pool } from "./processes/pool.ts";
import { runRank } from "./inference/rank.ts";
import type { Runtime } from "./requests/runtime.ts";
import { runTranscribe } from "./inference/transcribe.ts";
import { runDetokenize, runTokenize } from "./inference/tokenize.ts";

interface LocalRuntimeOptions {
  readonly store: Pick<Store, "resolve" | "check" | "list">;
  readonly pool: PoolOptions;
  readonly now: () => Date;
}

export function makeRuntime(options: LocalRuntimeOptions): Runtime {
  const pool = new Pool(options.pool);
  const adapters: Adapters = {
    over: async (model) => adaptersOver(await options.store.list(), model),
    scales: new Map(),
  };
  // Loaded with the first answer, so that a server starts without the parsers
  let callGrammars: Promise<CallGrammars> | undefined;
  const parts: RuntimeParts = {
    pool,
    store: options.store,
    now: options.now,
    callGrammars: () => (callGrammars ??= loadCallGrammars()),
    adapters,
  };
  return {
    generate: (request) => runGenerate(parts, request),
    chat: (request) => runChat(parts, request),
    countTokens: (request) => countTokens(parts, request),
    render: (request) => ("messages" in request ? renderChat(parts, request) : renderQuestion(parts, request)),
    embed: (request) => runEmbed(parts, request),
    rank: (request) => runRank(parts, request),
    transcribe: (request) => runTranscribe(parts, request),
    tokenize: (request) => runTokenize(parts, request),
    detokenize: (request) => runDetokenize(parts, request),
    adapters: (model) => listAdapters(adapters, model),
    scaleAdapters: (model, lora) => scaleAdapters(adapters, model, lora),
    unload: (model) => pool.unload(weightsOf(model)),
    loaded: () => pool.loaded(),
    activity: () => pool.activity(),
    close: (graceMs) => pool.close(graceMs),
  };
}

async function loadCallGrammars(): Promise<CallGrammars> {
  const { makeCallGrammars } = await import("./inference/call-grammars.ts");
  return makeCallGrammars();
}
