/**
 * A runtime without models: a small program that plays scripts. It implements the interface that the routes call,
 * records its requests, and knows whether its generators were ended.
 */
import { AppError } from "../../src/base/errors.ts";
import type {
  Activity,
  ChatRequest,
  EmbedRequest,
  EmbedResult,
  GenerateRequest,
  InferenceEvent,
  LoadedModel,
  ModelActivity,
  Runtime,
  Statistics,
} from "../../src/runtime/requests/runtime.ts";

export type Script = (request: GenerateRequest | ChatRequest) => AsyncGenerator<InferenceEvent, void, void>;

export interface FakeRuntime extends Runtime {
  /** Without `ref`. */
  readonly requests: (GenerateRequest | ChatRequest)[];
  /** Names in the store of the models found for requests, one each. */
  readonly refs: (string | undefined)[];
  readonly embedRequests: EmbedRequest[];
  /** Number of generators that have not ended. */
  running(): number;
  /** The script for the next requests. */
  script: Script;
  /** Answers the next embedding requests. */
  embedding: (request: EmbedRequest) => Promise<EmbedResult>;
  models: LoadedModel[];
  activities: ModelActivity[];
  /** Paths of the weights of unloaded models. */
  unloaded: string[];
}

export const STATISTICS: Statistics = {
  totalNs: 5_000_000,
  loadNs: 1_000_000,
  promptEvalCount: 3,
  promptCachedCount: 1,
  promptEvalNs: 2_000_000,
  evalCount: 2,
  evalNs: 1_500_000,
};

export const DONE: Extract<InferenceEvent, { kind: "done" }> = {
  kind: "done",
  reason: "stop",
  statistics: STATISTICS,
  context: [1, 2, 3],
};

/** Plays events, with a pause before each. */
export const play = (events: readonly InferenceEvent[], pauseMs = 0): Script =>
  async function* ({ signal }) {
    for (const event of events) {
      if (pauseMs > 0) await pause(pauseMs, signal);
      yield event;
    }
  };

export const hello = play([{ kind: "text", text: "He" }, { kind: "text", text: "llo" }, DONE]);

/** For each input the vector of its length, a third and minus a half; one token per character. */
export async function threeValues({ inputs }: EmbedRequest): Promise<EmbedResult> {
  return {
    embeddings: inputs.map((input) => Float32Array.of(input.length, 1 / 3, -0.5)),
    totalNs: 5_000_000,
    loadNs: 1_000_000,
    promptEvalCount: inputs.reduce((sum, input) => sum + input.length, 0),
  };
}

const IDLE: Activity = {
  running: 0,
  waiting: 0,
  events: { load: 1, unload: 0, evict: 0, crash: 0, hang: 0 },
  hung: [],
  images: { encoded: 2, reused: 3 },
  models: [],
  modelsMax: 3,
};

/** Text for ever. */
export const endless = (pauseMs: number): Script =>
  async function* ({ signal }) {
    for (let n = 0; ; n++) {
      if (pauseMs > 0) await pause(pauseMs, signal);
      yield { kind: "text", text: `word ${n} ` };
    }
  };

/** Ends early, with `cancelled`, when the client disconnects. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const gone = (): void => reject(new AppError("cancelled", "request canceled"));
  const timer = setTimeout(resolve, ms);
  signal.addEventListener("abort", gone, { once: true });
  if (signal.aborted) gone();
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", gone);
  }
}

/** The loaded model after a request, until it expires. */
function loadedModel({ model, keepAliveMs = 300_000 }: GenerateRequest | ChatRequest): LoadedModel {
  const expiresAt = new Date(Date.now() + Math.min(keepAliveMs, 1e12));
  const paths = { model: `/${model}`, adapters: [], files: [] };
  return { name: model, digest: "d", paths, sizeBytes: 1, vramBytes: 0, ctxLen: 512, expiresAt, pid: 1 };
}

export function makeFakeRuntime(script: Script = hello): FakeRuntime {
  let running = 0;
  async function* run(request: GenerateRequest | ChatRequest): AsyncGenerator<InferenceEvent, void, void> {
    const { ref, ...asked } = request;
    fake.requests.push(asked);
    fake.refs.push(ref?.displayName);
    fake.models = [loadedModel(request)];
    running++;
    try {
      const empty = "prompt" in request ? request.prompt === "" : request.messages.length === 0;
      if (empty) yield { kind: "done", reason: request.keepAliveMs === 0 ? "unload" : "load" };
      else yield* fake.script(request);
    } finally {
      running--;
      if (request.keepAliveMs === 0) fake.models = [];
    }
  }
  const fake: FakeRuntime = {
    requests: [],
    refs: [],
    embedRequests: [],
    embedding: threeValues,
    running: () => running,
    script,
    models: [],
    activities: [],
    unloaded: [],
    adapters: async () => [],
    scaleAdapters: async () => {},
    unload: ({ paths }) => void fake.unloaded.push(paths.model),
    generate: run,
    chat: run,
    countTokens: async (request) =>
      request.messages
        .map(({ content }) => content)
        .join(" ")
        .split(" ").length,
    async *transcribe({ audio, language = "en" }) {
      const about = { tokens: [1], from: 0, temperature: 0, logprob: -0.5, repetition: 1, silence: 0 };
      yield { kind: "segment", id: 1, segment: { ...about, start: 0, end: 1.5, text: ` ${audio.length} bytes` } };
      yield { kind: "transcribed", id: 1, language, seconds: 1.5 };
    },
    rank: async ({ documents }) => {
      const scores = documents.map((text) => text.length);
      const relevances = scores.map((score) => 1 - 1 / (1 + score));
      return { scores, relevances, totalNs: 5, loadNs: 1, promptEvalCount: scores.length };
    },
    render: async (request) => ("messages" in request ? JSON.stringify(request.messages) : request.prompt),
    embed: (request) => {
      const { ref, ...asked } = request;
      fake.embedRequests.push(asked);
      fake.refs.push(ref?.displayName);
      return fake.embedding(request);
    },
    tokenize: async ({ text, wantsPieces }) => {
      const bytes = [...new TextEncoder().encode(text)];
      const pieces = wantsPieces ? { pieces: bytes.map((byte) => Uint8Array.of(byte)) } : {};
      return { tokens: bytes, ...pieces, totalNs: 2, loadNs: 1 };
    },
    detokenize: async ({ tokens }) => ({
      text: new TextDecoder().decode(Uint8Array.from(tokens)),
      totalNs: 2,
      loadNs: 1,
    }),
    loaded: () => fake.models,
    activity: () => ({ ...IDLE, running, models: fake.activities }),
    close: async () => {},
  };
  return fake;
}
