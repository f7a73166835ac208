/**
 * What the server can ask of the models: the one interface between HTTP and inference. Requests are validated before
 * they get here; every answer is an async generator of events, and ending the generator (or its signal) stops the
 * model.
 */
import type { Options } from "../sampling/options.ts";

/** A tool call that the model wants made. */
export interface ToolCall {
  readonly id?: string;
  readonly function: { readonly index?: number; readonly name: string; readonly arguments: Record<string, unknown> };
}

export interface Message {
  readonly role: string;
  readonly content: string;
  readonly thinking?: string;
  /** Raw bytes of each image. */
  readonly images?: readonly Uint8Array[];
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

interface InferenceRequest {
  /** As the client wrote it; echoed in errors. */
  readonly model: string;
  readonly options: Options;
  readonly format?: Format;
  /** Milliseconds to stay loaded after this request; Infinity for ever; undefined: the server's default. */
  readonly keepAliveMs?: number;
  /** Aborted when the client goes away. */
  readonly signal: AbortSignal;
}

export interface GenerateRequest extends InferenceRequest {
  /** Empty: load the model (or unload it, with `keepAliveMs` 0). */
  readonly prompt: string;
  readonly suffix?: string;
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
}

/** All durations in integer nanoseconds. */
export interface Statistics {
  readonly totalNs: number;
  readonly loadNs: number;
  readonly promptEvalCount: number;
  readonly promptEvalNs: number;
  readonly evalCount: number;
  readonly evalNs: number;
}

/** The last event is always `done`; a failure is thrown. `statistics` is absent for load and unload. */
export type InferenceEvent =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "toolCall"; readonly call: ToolCall }
  | {
      readonly kind: "done";
      readonly reason: "stop" | "length" | "load" | "unload";
      readonly statistics?: Statistics;
      /** Ids of prompt and answer (generate without `raw`). */
      readonly context?: readonly number[];
    };

/** A model in memory. */
export interface LoadedModel {
  readonly name: string;
  /** Hex digest of its manifest. */
  readonly digest: string;
  /** Bytes of weights, KV cache and scratch together. */
  readonly sizeBytes: number;
  readonly vramBytes: number;
  readonly ctxLen: number;
  readonly expiresAt: Date;
  /** Runner process id. */
  readonly pid: number;
}

export interface Runtime {
  generate(request: GenerateRequest): AsyncGenerator<InferenceEvent, void, void>;
  chat(request: ChatRequest): AsyncGenerator<InferenceEvent, void, void>;
  /** Models in memory, the one that expires last first. */
  loaded(): readonly LoadedModel[];
  /** Lets running requests finish for up to `graceMs`, then ends every runner. */
  close(graceMs: number): Promise<void>;
}
