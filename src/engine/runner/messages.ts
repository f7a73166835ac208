/**
 * Messages between the server and a runner over the spawn channel. Values must be structured-cloneable; they go as JSON
 * if possible (base/wire.ts). The server chooses the ids.
 */
import type { Code, NamedFile } from "../../base/index.ts";
import type { SpeechSegment, SpeechTask } from "../audio/whisper/transcriber.ts";
import type { AdapterChoice } from "../batching/adapter-set.ts";
import type { EmbedEvent } from "../batching/embedder.ts";
import type { EngineInfo } from "../batching/engine-info.ts";
import type { AnswerSettings, SequenceEvent } from "../batching/sequence.ts";
import type { LoadOptions, StreamedCounts } from "../program/backend.ts";
import type { TemplateFacts } from "../text/template/facts.ts";
import type { FillFile } from "../text/tokenizer/fill-in-the-middle.ts";
import type { PromptMessage, PromptTool, Think } from "../text/template/messages.ts";

export interface LoadMessage extends Pick<
  LoadOptions,
  "precise" | "threads" | "cacheDir" | "gpuKernels" | "simdLevel" | "kvType"
> {
  readonly kind: "load";
  /** GGUF file. */
  readonly path: string;
  /** GGUF file that encodes images; undefined: the model's own, if it has an encoder. */
  readonly projector?: string | undefined;
  /** GGUF file of the draft model. */
  readonly draft?: string | undefined;
  /** Adapter files, in the order of application. */
  readonly adapters: readonly string[];
  /** Adapters of other models over the same base, which requests may choose; undefined: requests choose none. */
  readonly offers?: readonly string[] | undefined;
  /** The model's files, if the GGUF only describes it. */
  readonly files?: readonly NamedFile[];
  /** The template of the model name that caused the load; others are defined by `template` messages. */
  readonly template: TemplateChoice;
  /** `auto`, or the name of a backend. */
  readonly backend: string;
  /** Layers on the GPU, the output counted as one; 0: no GPU; undefined: as many as fit. */
  readonly gpuLayers: number | undefined;
  /** Bytes that the model may take on the GPU; undefined: all that is free. */
  readonly gpuMemory: number | undefined;
  /** The GPU's name, or a part of it; undefined: the best. */
  readonly gpu?: string | undefined;
  /** `auto`: limited by `cacheMemory`. */
  readonly ctxLen: number | "auto";
  /** Sequences that decode at once; `auto`: as many as the GPU's memory allows. */
  readonly slots: number | "auto";
  /** Bytes of the machine's memory for the KV cache. */
  readonly cacheMemory?: number | undefined;
  /** Maximum prompt tokens per run. */
  readonly chunk: number;
  /** Bytes for snapshots of prefixes in that folder, for all models together; undefined or 0: none are stored. */
  readonly snapshotBytes?: number | undefined;
}

/** A model's Go template, which replaces or complements the Jinja template in its file; see `choosePrompt`. */
export interface TemplateChoice {
  readonly go: string | undefined;
  readonly prefersGo: boolean | undefined;
  /** Names in the model's configuration: see `engine/text/template/named.ts`. */
  readonly renderer?: string | undefined;
  readonly parser?: string | undefined;
}

export type TemplateReply = { readonly facts: TemplateFacts } | { readonly code: Code; readonly message: string };

/** Number of the template in the load message. */
export const LOADED_TEMPLATE = 0;

/** Text appended to a rendered prompt: the beginning of an answer. */
export interface Ending {
  /** Not repeated if the prompt ends with it. */
  readonly text: string;
  /** Inserted before `text` if the prompt ends with `open`, apart from blanks. */
  readonly inside?: { readonly open: string; readonly close: string };
}

interface Rendered {
  /** Number of a defined template. */
  readonly template: number;
  /** The time that templates print. */
  readonly nowMs: number;
  /** Undefined: not set. */
  readonly think?: Think;
  /** Additional variables of a Jinja template. */
  readonly variables?: Readonly<Record<string, unknown>>;
  readonly ending?: Ending;
}

/** A message with the files of its images. */
export interface InputMessage extends PromptMessage {
  readonly images?: readonly Uint8Array[];
}

/** The input of a request, as the server received it. */
export type PromptInput =
  /** Text that may contain the markup of control tokens, after images and the ids of an earlier answer. */
  | {
      readonly kind: "text";
      readonly text: string;
      readonly images?: readonly Uint8Array[];
      readonly context: readonly number[];
      readonly ending?: Ending;
    }
  /** A gap between two texts without markup. */
  | {
      readonly kind: "gap";
      readonly before: string;
      readonly after: string;
      /** Other files, the most important last. */
      readonly files?: readonly FillFile[];
    }
  /** A conversation: if it is too long, as few of its oldest messages as possible are dropped. */
  | (Rendered & {
      readonly kind: "chat";
      readonly messages: readonly InputMessage[];
      readonly tools?: readonly PromptTool[];
    })
  /** One question, after the ids of an earlier answer. */
  | (Rendered & {
      readonly kind: "question";
      readonly prompt: string;
      /** Images before it. */
      readonly images?: readonly Uint8Array[];
      readonly suffix?: string;
      readonly system?: string;
      readonly history?: readonly PromptMessage[];
      readonly context: readonly number[];
    })
  /** The prompt that an earlier request holds, and additional text. */
  | { readonly kind: "after"; readonly id: number; readonly text: string };

export interface GenerateMessage extends AnswerSettings {
  readonly kind: "generate";
  readonly id: number;
  readonly asked: PromptInput;
  /** Keeps the rendered prompt until `forget`, for a request that continues it. */
  readonly holds?: boolean;
}

/** Answered by one or more `embedded`, or by `embedFailed`. */
export interface EmbedMessage {
  readonly kind: "embed";
  readonly id: number;
  /** At least one. */
  readonly inputs: readonly string[];
  /** Query for scoring: the inputs are documents, and each gets a score instead of a vector. */
  readonly query?: string;
  /** For a text longer than the context: true truncates it, false fails the request. */
  readonly truncate: boolean;
  /** Maximum tokens of a text, if less than the loaded context. */
  readonly ctxLen?: number;
  readonly adapters?: readonly AdapterChoice[];
}

/** Answered by `segment` messages and one `transcribed`, or by `transcribeFailed`. */
export interface TranscribeMessage extends SpeechTask {
  readonly kind: "transcribe";
  readonly id: number;
  /** A file of sound. */
  readonly audio: Uint8Array;
}

/** Server → runner. */
export type ToRunner =
  | LoadMessage
  | GenerateMessage
  | EmbedMessage
  | TranscribeMessage
  | { readonly kind: "cancel"; readonly id: number }
  /** Releases the prompt that a request holds. */
  | { readonly kind: "forget"; readonly id: number }
  /** Defines a template under a new number; answered by `template`. */
  | {
      readonly kind: "template";
      readonly id: number;
      readonly number: number;
      readonly choice: TemplateChoice;
    }
  /** Deletes a template. */
  | { readonly kind: "drop"; readonly number: number }
  /** Asks for the number of tokens of a whole prompt; answered by `count`. */
  | { readonly kind: "count"; readonly id: number; readonly asked: PromptInput }
  /** Asks for the text of a prompt, cut as for an answer with these settings; answered by `text`. */
  | {
      readonly kind: "render";
      readonly id: number;
      readonly asked: PromptInput;
      readonly settings: Pick<AnswerSettings, "options" | "truncate" | "shift">;
    }
  /** Answered by `tokens`. */
  | {
      readonly kind: "tokenize";
      readonly id: number;
      readonly text: string;
      readonly addSpecial: boolean;
      readonly parseSpecial: boolean;
      readonly wantsPieces: boolean;
    }
  /** Answered by `text`. */
  | { readonly kind: "detokenize"; readonly id: number; readonly tokens: readonly number[] }
  /** Answered by `pong`, between two steps. */
  | { readonly kind: "ping" }
  | { readonly kind: "close" };

/** Runner → server. */
export type FromRunner =
  | { readonly kind: "progress"; readonly fraction: number }
  | { readonly kind: "ready"; readonly info: EngineInfo; readonly template: TemplateReply }
  /** Loading failed; the process ends. */
  | { readonly kind: "failed"; readonly code: Code; readonly message: string }
  | {
      readonly kind: "events";
      readonly events: readonly SequenceEvent[];
      /** Reads since the load of weights that do not fit in memory; omitted: all fit. */
      readonly streamed?: StreamedCounts;
    }
  | EmbedEvent
  | SpeechEvent
  | { readonly kind: "transcribeFailed"; readonly id: number; readonly code: Code; readonly message: string }
  /** The process is about to end and takes no new requests. */
  | { readonly kind: "leaving" }
  /**
   * Number of turns of the event loop so far, one after each step: an unchanged number means that one step is still
   * running.
   */
  | { readonly kind: "pong"; readonly turns: number }
  /** An image of a prompt was encoded, or its rows were cached. */
  | { readonly kind: "image"; readonly how: "encoded" | "reused" }
  | Reply;

/** Parts of a transcription. */
export type SpeechEvent =
  | { readonly kind: "segment"; readonly id: number; readonly segment: SpeechSegment }
  /** The last message: the recording's language, as `en`, and its length. */
  | { readonly kind: "transcribed"; readonly id: number; readonly language: string; readonly seconds: number };

/** Answers to single questions. */
export type Reply =
  | { readonly kind: "template"; readonly id: number; readonly reply: TemplateReply }
  | { readonly kind: "count"; readonly id: number; readonly tokens: number }
  | {
      readonly kind: "tokens";
      readonly id: number;
      readonly tokens: Int32Array;
      /** The bytes of each token, if requested. */
      readonly pieces?: readonly Uint8Array[];
    }
  | { readonly kind: "text"; readonly id: number; readonly text: string }
  | {
      readonly kind: "refused";
      readonly id: number;
      readonly code: Code;
      readonly message: string;
    };
