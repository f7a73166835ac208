/**
 * What the server can ask of the models: the one interface between HTTP and inference. Requests are validated before
 * they get here; every answer is an async generator of events, and ending the generator (or its signal) stops the
 * model.
 */
import type { Trace } from "../base/tracing.ts";
import type { Options } from "../engine/index.ts";
import type { ModelRef } from "../library/portable.ts";

/** A tool call that the model wants made. */
export interface ToolCall {
  readonly id?: string;
  readonly function: { readonly index?: number; readonly name: string; readonly arguments: Record<string, unknown> };
}

/** A tool call that the end of the answer cut. */
export interface CutCall {
  readonly id?: string;
  readonly function: {
    readonly index?: number;
    readonly name: string;
    /** The beginning of the arguments as JSON; complete if the model finished them, empty if it had not begun. */
    readonly arguments: string;
  };
  /** The call as the model wrote it, for APIs that can only show complete calls. */
  readonly text: string;
}

export interface Message {
  readonly role: string;
  readonly content: string;
  readonly thinking?: string;
  /** Raw bytes of each image. */
  readonly images?: readonly Uint8Array[];
  /** Where in `content` each of them stands, in UTF-16 units, in order; left out: all before it. */
  readonly imagesAt?: readonly number[];
  readonly tool_calls?: readonly ToolCall[];
  readonly tool_name?: string;
  readonly tool_call_id?: string;
}

export interface Tool {
  readonly type: string;
  readonly function: { readonly name: string; readonly description?: string; readonly parameters?: unknown };
}

/** `"json"`: any JSON object; an object: a JSON schema. */
export type Format = "json" | Record<string, unknown>;

/** Whether a model that can think does so before it answers, and how hard where it has levels. */
export type Think = boolean | "low" | "medium" | "high" | "max";

export type ToolChoice = "auto" | "none" | "required" | { readonly name: string };

/** A model of the store, as a request names it. */
export interface NamedModel {
  /** As the client wrote it; echoed in errors. */
  readonly model: string;
  /** What it names, where that was looked up already; undefined: the runtime looks it up. */
  readonly ref?: ModelRef;
}

/** A token and the natural logarithm of its probability. */
export interface TokenLogprob {
  readonly token: string;
  /** UTF-8 bytes of the token: part of a character where it ends inside one. */
  readonly bytes: readonly number[];
  readonly logprob: number;
}

/** The token that was chosen, and the likeliest ones, best first. */
export interface ChosenLogprob extends TokenLogprob {
  readonly top: readonly TokenLogprob[];
}

export interface InferenceRequest extends NamedModel {
  readonly options: Options;
  readonly format?: Format;
  /** Undefined: as the model does by itself. */
  readonly think?: Think;
  /** How many alternatives to report for every token; 0: the chosen one's own; undefined: nothing. */
  readonly logprobs?: number;
  /** Whether a prompt that is longer than the context is cut (the default) or refused. */
  readonly truncate?: boolean;
  /** Whether a full context drops its oldest half and goes on (the default) or ends the answer. */
  readonly shift?: boolean;
  /** Milliseconds to stay loaded after this request; Infinity for ever; undefined: the server's default. */
  readonly keepAliveMs?: number;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
}

export interface GenerateRequest extends InferenceRequest {
  /** Empty: load the model (or unload it, with `keepAliveMs` 0). */
  readonly prompt: string;
  readonly suffix?: string;
  /** To unload the model at once: its requests fail. */
  readonly force?: boolean;
  readonly system?: string;
  /** Go template that replaces the model's. */
  readonly template?: string;
  /** Token ids of an earlier answer, put before the prompt. */
  readonly context?: readonly number[];
  /** No template; no context in the answer. */
  readonly raw: boolean;
  readonly images?: readonly Uint8Array[];
}

export interface ChatRequest extends InferenceRequest {
  /** Empty: load the model (or unload it, with `keepAliveMs` 0). */
  readonly messages: readonly Message[];
  readonly tools?: readonly Tool[];
  /** Default: `auto`. */
  readonly toolChoice?: ToolChoice;
  /** Whose conversation it is, for who chooses a server by what that has in its cache. */
  readonly session?: string;
  /** Where it belongs, for servers elsewhere. */
  readonly trace?: Trace;
  /** What the messages say came from outside: texts of the model's control tokens in them are text. */
  readonly isOutside?: boolean;
}

/** All durations in integer nanoseconds. */
export interface Statistics {
  readonly totalNs: number;
  readonly loadNs: number;
  readonly promptEvalCount: number;
  /** How many of them the model had in its cache. */
  readonly promptCachedCount: number;
  readonly promptEvalNs: number;
  readonly evalCount: number;
  readonly evalNs: number;
}

/**
 * The last event is always `done`; a failure is thrown. `prompt` comes once, with the first token and before what it
 * says. `statistics` is absent for load and unload.
 */
export type InferenceEvent =
  | { readonly kind: "prompt"; readonly promptEvalCount: number; readonly promptCachedCount: number }
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
      /** Whether part of the prompt was left out to fit the context. */
      readonly truncated?: boolean;
      /** The stop sequence that ended the answer. */
      readonly stopSequence?: string;
    };

export interface RankRequest extends NamedModel {
  readonly query: string;
  /** At least one. */
  readonly documents: readonly string[];
  readonly options: Options;
  /** Whether a document that is longer than the context loses its end (the default) or is refused. */
  readonly truncate?: boolean;
  /** Milliseconds to stay loaded after this request; Infinity for ever; undefined: the server's default. */
  readonly keepAliveMs?: number;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
}

/** Durations in integer nanoseconds. */
export interface RankResult {
  /** What the model says, one per document. */
  readonly scores: readonly number[];
  /** The same from 0 to 1. */
  readonly relevances: readonly number[];
  readonly totalNs: number;
  readonly loadNs: number;
  /** Tokens of all pairs together. */
  readonly promptEvalCount: number;
}

export interface EmbedRequest extends NamedModel {
  /** Each gets one embedding, `""` too. None: load the model (or unload it, with `keepAliveMs` 0). */
  readonly inputs: readonly string[];
  readonly options: Options;
  /** Whether an input that is longer than the context loses its end (the default) or is refused. */
  readonly truncate?: boolean;
  /** Only the first so many values of each embedding, of unit length again; no effect where it has no more. */
  readonly dimensions?: number;
  /** Milliseconds to stay loaded after this request; Infinity for ever; undefined: the server's default. */
  readonly keepAliveMs?: number;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
}

/** Durations in integer nanoseconds. */
export interface EmbedResult {
  /** One per input, in order, of unit length; a vector of zeros stays so. */
  readonly embeddings: readonly Float32Array[];
  readonly totalNs: number;
  readonly loadNs: number;
  /** Tokens of all inputs together, special ones included. */
  readonly promptEvalCount: number;
}

interface VocabularyRequest extends NamedModel {
  readonly options: Options;
  /** Milliseconds to stay loaded after this request; Infinity for ever; undefined: the server's default. */
  readonly keepAliveMs?: number;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
}

export interface TokenizeRequest extends VocabularyRequest {
  readonly text: string;
  /** Add BOS and EOS where the model wants them. */
  readonly addSpecial: boolean;
  /** Read the text of control tokens as those tokens. */
  readonly parseSpecial: boolean;
  readonly wantsPieces: boolean;
}

/** Durations in integer nanoseconds. */
export interface TokenizeResult {
  readonly tokens: readonly number[];
  /** The bytes of each token. */
  readonly pieces?: readonly Uint8Array[];
  readonly totalNs: number;
  readonly loadNs: number;
}

export interface DetokenizeRequest extends VocabularyRequest {
  readonly tokens: readonly number[];
}

/** Durations in integer nanoseconds. */
export interface DetokenizeResult {
  readonly text: string;
  readonly totalNs: number;
  readonly loadNs: number;
}

/** A model in memory. */
export interface LoadedModel {
  readonly name: string;
  /** Hex digest of its manifest. */
  readonly digest: string;
  /** What it was loaded from: names that share these files share it. */
  readonly paths: Pick<ModelRef["paths"], "model" | "adapters" | "files">;
  /** Bytes of weights, KV cache and scratch together. */
  readonly sizeBytes: number;
  readonly vramBytes: number;
  readonly ctxLen: number;
  readonly expiresAt: Date;
  /** Runner process id. */
  readonly pid: number;
}

/** What a model is at that is in memory, or wanted there. */
export interface ModelActivity {
  readonly name: string;
  /** Requests that it works on. */
  readonly running: number;
  /** Requests that wait for a slot, or for it to be loaded. */
  readonly waiting: number;
  readonly isLoaded: boolean;
  readonly hasAdapters: boolean;
  /** Tokens that slots of running requests keep, and that all slots have room for. */
  readonly kv: { readonly used: number; readonly room: number };
}

/** A model whose runner hung. */
export interface HungModel {
  readonly name: string;
  /** Epoch milliseconds. */
  readonly at: number;
}

/** What the runtime does and has done since it started. */
export interface Activity {
  /** Requests that models work on. */
  readonly running: number;
  /** Requests that wait for a model. */
  readonly waiting: number;
  /** How often each happened; `evict`: those unloads that made room for another model. */
  readonly events: Readonly<Record<"load" | "unload" | "evict" | "crash" | "hang", number>>;
  /** Models whose runners hung in the last ten minutes and were ended. */
  readonly hung: readonly HungModel[];
  /** What became of the images of prompts: made rows of, or known already. */
  readonly images: Readonly<Record<"encoded" | "reused", number>>;
  readonly models: readonly ModelActivity[];
  /** Models that are kept in memory at once, where there is room for them. */
  readonly modelsMax: number;
}

/** What turns of agents need of models, wherever these are. */
export interface ChatRuntime extends Pick<Runtime, "chat" | "countTokens"> {
  loaded(): readonly Pick<LoadedModel, "name" | "ctxLen">[];
}

export interface Runtime {
  generate(request: GenerateRequest): AsyncGenerator<InferenceEvent, void, void>;
  chat(request: ChatRequest): AsyncGenerator<InferenceEvent, void, void>;
  /** Tokens of the whole prompt that a chat would give the model, which is loaded for that. */
  countTokens(request: ChatRequest): Promise<number>;
  /** The text that a model would be given, which is loaded for that. */
  render(request: GenerateRequest | ChatRequest): Promise<string>;
  /** Throws `bad_request` where an input is too long; aborting the signal stops the model. */
  embed(request: EmbedRequest): Promise<EmbedResult>;
  /** Throws `bad_request` where the model does not rank, or a text is too long. */
  rank(request: RankRequest): Promise<RankResult>;
  /** The ids of a text for a model. */
  tokenize(request: TokenizeRequest): Promise<TokenizeResult>;
  /** Throws `bad_request` where an id is not one of the model's. */
  detokenize(request: DetokenizeRequest): Promise<DetokenizeResult>;
  /** Takes a model out of memory once it is idle, also one that is no longer in the store. */
  unload(model: Pick<ModelRef, "paths">): void;
  /** Models in memory, the one that expires last first. */
  loaded(): readonly LoadedModel[];
  activity(): Activity;
  /** Lets running requests finish for up to `graceMs`, then ends every runner. */
  close(graceMs: number): Promise<void>;
}
