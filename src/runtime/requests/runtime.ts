/**
 * The one interface between HTTP and inference. Requests are validated before they arrive here; every answer is an
 * async generator of events, and ending the generator (or aborting its signal) stops the model.
 */
import type { Trace } from "../../base/tracing.ts";
import type {
  AnswerGrammar,
  ChosenLogprob,
  EngineInfo,
  Options,
  PromptLogprob,
  PromptMessage,
  SpeechEvent,
  SpeechTask,
  TokenLogprob,
  Tool,
  ToolCall,
} from "../../engine/index.ts";
import type { ModelRef } from "../../library/portable.ts";

export type { ChosenLogprob, PromptLogprob, TokenLogprob, Tool, ToolCall };

/** A tool call that the end of the answer cut. */
export interface CutCall {
  readonly id?: string;
  readonly function: {
    readonly index?: number;
    readonly name: string;
    /** The beginning of the arguments as JSON: complete if the model finished them, empty if it had not begun. */
    readonly arguments: string;
  };
  /** The call as the model wrote it, for APIs that can only show complete calls. */
  readonly text: string;
}

export interface Message extends Omit<PromptMessage, "images" | "isOutside"> {
  /** Raw bytes of each image. */
  readonly images?: readonly Uint8Array[];
}

/** `"json"`: any JSON object; an object: a JSON schema. */
export type Format = "json" | Record<string, unknown>;

/** Thinking, for a model that can think: on or off, or a level if the model has levels. */
export type Think = boolean | "low" | "medium" | "high" | "max";

export type ToolChoice = "auto" | "none" | "required" | { readonly name: string };

/** A model of the store, as a request names it. */
export interface NamedModel {
  /** As the client wrote it; echoed in errors. */
  readonly model: string;
  /** The model, if already looked up; undefined: the runtime looks it up. */
  readonly ref?: ModelRef;
}

/** An adapter that a request chooses. */
export interface AdapterScale {
  /** Its number, or the name of the model that it belongs to. */
  readonly adapter: number | string;
  /** Factor on its changes; 0: none. */
  readonly scale: number;
}

/** An adapter that requests of a model may choose. */
export interface AdapterFacts {
  readonly id: number;
  /** The model that it belongs to. */
  readonly name: string;
  readonly path: string;
  /** For requests that choose no adapters. */
  readonly scale: number;
}

/** Work for a model. */
interface ModelRequest extends NamedModel {
  readonly options: Options;
  /** Milliseconds to stay loaded after this request; Infinity: for ever; undefined: the server's default. */
  readonly keepAliveMs?: number;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
}

export interface InferenceRequest extends ModelRequest {
  readonly format?: Format;
  /** Constrains the whole answer; then `format` is absent. */
  readonly grammar?: AnswerGrammar;
  /**
   * Adapters in place of the model's own; they may belong to other models over the same base. Undefined: the model's
   * own.
   */
  readonly lora?: readonly AdapterScale[];
  /** Undefined: the model's default. */
  readonly think?: Think;
  /** Number of alternatives to report per token; 0: only the chosen token's own; undefined: nothing. */
  readonly logprobs?: number;
  /** With `logprobs`, true: tokens of stop strings and the one that ends the answer have theirs, too. */
  readonly endLogprobs?: boolean;
  /** As `logprobs`, for the tokens of the prompt, which is then neither cut nor taken from the cache. */
  readonly promptLogprobs?: number;
  /** True: `progress` events tell how much of the prompt is read. */
  readonly reportsProgress?: boolean;
  /** For a prompt longer than the context: true (default) cuts it, false refuses it. */
  readonly truncate?: boolean;
  /** For a full context: true (default) drops its oldest half and continues, false ends the answer. */
  readonly shift?: boolean;
}

export interface GenerateRequest extends InferenceRequest {
  /** Empty: load the model (or unload it, with `keepAliveMs` 0). */
  readonly prompt: string;
  readonly suffix?: string;
  /** Fills the gap between prompt and suffix, empty or not, with these files before it, the most important last. */
  readonly fill?: readonly { readonly name: string; readonly text: string }[];
  /** Unloads the model at once: its running requests fail. */
  readonly force?: boolean;
  readonly system?: string;
  /** Go template that replaces the model's. */
  readonly template?: string;
  /** Token ids of an earlier answer, put before the prompt. */
  readonly context?: readonly number[];
  /** Uses no template; the answer has no context. */
  readonly raw: boolean;
  readonly images?: readonly Uint8Array[];
}

export interface ChatRequest extends InferenceRequest {
  /** Empty: load the model (or unload it, with `keepAliveMs` 0). */
  readonly messages: readonly Message[];
  readonly tools?: readonly Tool[];
  /** Additional variables for the model's chat template, if it is a Jinja template. */
  readonly templateVariables?: Readonly<Record<string, unknown>>;
  /** Default: `auto`. */
  readonly toolChoice?: ToolChoice;
  /** An answer may have several calls; default: true. */
  readonly parallelToolCalls?: boolean;
  /** Key of the conversation, for routing to a server that has its prefix cached. */
  readonly session?: string;
  /** The trace context for remote servers. */
  readonly trace?: Trace;
  /** True if the messages come from outside: control tokens in them are read as plain text. */
  readonly isOutside?: boolean;
}

/** All durations in integer nanoseconds. */
export interface Statistics {
  readonly totalNs: number;
  readonly loadNs: number;
  readonly promptEvalCount: number;
  /** Prompt tokens that were cached. */
  readonly promptCachedCount: number;
  readonly promptEvalNs: number;
  readonly evalCount: number;
  readonly evalNs: number;
}

/**
 * The last event is always `done`; failures are thrown. `progress` comes where it was requested, while the prompt is
 * read. `prompt` comes once, with the first token and before its text.
 * `statistics` is absent for load and unload.
 */
export type InferenceEvent =
  | {
      readonly kind: "prompt";
      readonly promptEvalCount: number;
      readonly promptCachedCount: number;
      readonly promptEvalNs: number;
    }
  | {
      readonly kind: "progress";
      readonly promptEvalCount: number;
      readonly promptCachedCount: number;
      /** Prompt tokens that are done, cached ones included. */
      readonly processed: number;
      readonly promptEvalNs: number;
    }
  /** The next tokens of the prompt, if requested: all of them before the answer. */
  | { readonly kind: "promptLogprobs"; readonly tokens: readonly PromptLogprob[] }
  | { readonly kind: "text"; readonly text: string; readonly logprobs?: readonly ChosenLogprob[] }
  | { readonly kind: "thinking"; readonly text: string; readonly logprobs?: readonly ChosenLogprob[] }
  | { readonly kind: "toolCall"; readonly call: ToolCall }
  | { readonly kind: "cutCall"; readonly call: CutCall }
  | {
      readonly kind: "done";
      readonly reason: "stop" | "length" | "load" | "unload";
      readonly statistics?: Statistics;
      /** Ids of prompt and answer (generate without `raw`). */
      readonly context?: readonly number[];
      /** True if part of the prompt was left out to fit the context. */
      readonly truncated?: boolean;
      /** The stop sequence that ended the answer. */
      readonly stopSequence?: string;
    };

export interface RankRequest extends ModelRequest {
  readonly query: string;
  /** At least one. */
  readonly documents: readonly string[];
  /** For a document longer than the context: true (default) cuts its end, false refuses it. */
  readonly truncate?: boolean;
}

/** Durations are integer nanoseconds. */
interface Timed {
  readonly totalNs: number;
  readonly loadNs: number;
}

export interface RankResult extends Timed {
  /** The model's raw outputs, one per document. */
  readonly scores: readonly number[];
  /** The scores mapped to 0 … 1. */
  readonly relevances: readonly number[];
  /** Tokens of all pairs together. */
  readonly promptEvalCount: number;
}

export interface EmbedRequest extends ModelRequest {
  /**
   * Texts, each of which gets one embedding, also `""`. Empty: loads the model (or unloads it, with `keepAliveMs` 0).
   */
  readonly inputs: readonly string[];
  /** For an input longer than the context: true (default) cuts its end, false refuses it. */
  readonly truncate?: boolean;
  /** Keeps only the first values of each embedding, normalized again; no effect on shorter ones. */
  readonly dimensions?: number;
}

export interface EmbedResult extends Timed {
  /** One per input, in order, of unit length; zero vectors stay zero. */
  readonly embeddings: readonly Float32Array[];
  /** Tokens of all inputs together, special ones included. */
  readonly promptEvalCount: number;
}

export interface TranscribeRequest extends ModelRequest, SpeechTask {
  /** A file of sound. */
  readonly audio: Uint8Array;
}

export interface TokenizeRequest extends ModelRequest {
  readonly text: string;
  /** Adds BOS and EOS if the model wants them. */
  readonly addSpecial: boolean;
  /** True: the texts of control tokens become these tokens. */
  readonly parseSpecial: boolean;
  readonly wantsPieces: boolean;
}

export interface TokenizeResult extends Timed {
  readonly tokens: readonly number[];
  /** The bytes of each token. */
  readonly pieces?: readonly Uint8Array[];
}

export interface DetokenizeRequest extends ModelRequest {
  readonly tokens: readonly number[];
}

export interface DetokenizeResult extends Timed {
  readonly text: string;
}

export interface LoadedModel {
  readonly name: string;
  /** Hex digest of its manifest. */
  readonly digest: string;
  /** The loaded files: names with the same files share the model. */
  readonly paths: Pick<ModelRef["paths"], "model" | "adapters" | "files">;
  /** Bytes of weights, KV cache and scratch together. */
  readonly sizeBytes: number;
  readonly vramBytes: number;
  /** The devices with parts of the model; absent: it is on one device. */
  readonly placement?: NonNullable<EngineInfo["placement"]>;
  /** Absent: all its weights are in memory. */
  readonly streamed?: StreamedWeights;
  readonly ctxLen: number;
  readonly expiresAt: Date;
  /** Runner process id. */
  readonly pid: number;
  /**
   * True if it uses the runner of a model with other adapters over the same base, which is listed too and has the
   * bytes.
   */
  readonly isBeside?: boolean;
}

/** Weights that do not fit in memory; counts since the load. */
interface StreamedWeights {
  /** Bytes of weights in memory. */
  readonly memory: number;
  /** Uses of an expert's weights that were in memory, and uses for which they were read. */
  readonly hits: number;
  readonly misses: number;
  /** Bytes read. */
  readonly bytes: number;
}

/** Activity of a model that is loaded, loading or waited for. */
export interface ModelActivity {
  readonly name: string;
  /** Requests in progress. */
  readonly running: number;
  /** Requests that wait for a slot or for the load. */
  readonly waiting: number;
  readonly isLoaded: boolean;
  readonly hasAdapters: boolean;
  /** Tokens in the slots of running requests, and the capacity of all slots. */
  readonly kv: { readonly used: number; readonly room: number };
}

export interface HungModel {
  readonly name: string;
  /** Epoch milliseconds. */
  readonly at: number;
}

/** Activity of the runtime, and its counts since the start. */
export interface Activity {
  /** Requests in progress. */
  readonly running: number;
  /** Requests that wait for a model. */
  readonly waiting: number;
  /** Number of events by kind; `evict`: unloads that made room for another model. */
  readonly events: Readonly<Record<"load" | "unload" | "evict" | "crash" | "hang", number>>;
  /** Models whose runners hung in the last ten minutes and were killed. */
  readonly hung: readonly HungModel[];
  /** Images and recordings of prompts: encoded, or with cached rows. */
  readonly images: Readonly<Record<"encoded" | "reused", number>>;
  readonly models: readonly ModelActivity[];
  /** Maximum number of models in memory, if there is room. */
  readonly modelsMax: number;
}

/** The models for agents' turns, local or remote. */
export interface ChatRuntime extends Pick<Runtime, "chat" | "countTokens"> {
  loaded(): readonly Pick<LoadedModel, "name" | "ctxLen">[];
}

export interface Runtime {
  generate(request: GenerateRequest): AsyncGenerator<InferenceEvent, void, void>;
  chat(request: ChatRequest): AsyncGenerator<InferenceEvent, void, void>;
  /** The number of tokens in a chat's whole prompt; loads the model. */
  countTokens(request: ChatRequest): Promise<number>;
  /** The prompt text of a request; loads the model. */
  render(request: GenerateRequest | ChatRequest): Promise<string>;
  /** Throws `bad_request` if an input is too long; aborting the signal stops the model. */
  embed(request: EmbedRequest): Promise<EmbedResult>;
  /** Throws `bad_request` if the model is not a reranker, or a text is too long. */
  rank(request: RankRequest): Promise<RankResult>;
  /**
   * Transcribes a recording; the last event is `transcribed`. Throws `bad_request` if the model does not transcribe
   * speech, or the file is not one of sound.
   */
  transcribe(request: TranscribeRequest): AsyncGenerator<SpeechEvent, void, void>;
  /** The ids of a text for a model. */
  tokenize(request: TokenizeRequest): Promise<TokenizeResult>;
  /** Throws `bad_request` for an id outside the model's vocabulary. */
  detokenize(request: DetokenizeRequest): Promise<DetokenizeResult>;
  /** The adapters of all models over a model's base, in the order of their numbers. */
  adapters(model: ModelRef): Promise<readonly AdapterFacts[]>;
  /** Sets the adapters of a model's requests that choose none. Throws `bad_request` for an unknown adapter. */
  scaleAdapters(model: ModelRef, lora: readonly AdapterScale[]): Promise<void>;
  /** Unloads a model once it is idle, even if the store no longer has it. */
  unload(model: Pick<ModelRef, "paths">): void;
  /** Models in memory, the one that expires last first. */
  loaded(): readonly LoadedModel[];
  activity(): Activity;
  /** Lets running requests finish for up to `graceMs`, then ends every runner. */
  close(graceMs: number): Promise<void>;
}
