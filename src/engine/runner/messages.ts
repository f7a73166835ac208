/**
 * What the server and a runner say to each other over the spawn channel. Structured-clone values only, which go as JSON
 * where they can (base/wire.ts); ids are the server's.
 */
import type { Code, KernelChoice, KvCacheType, NamedFile } from "../../base/index.ts";
import type { EmbedEvent } from "../batching/embedder.ts";
import type { EngineInfo } from "../batching/load.ts";
import type { AnswerSettings, SequenceEvent } from "../batching/sequence.ts";
import type { TemplateFacts } from "../text/template/facts.ts";
import type { PromptMessage, PromptTool, Think } from "../text/template/messages.ts";

export interface LoadMessage {
  readonly kind: "load";
  /** GGUF file. */
  readonly path: string;
  /** GGUF file that makes rows of images; undefined: the model's own, where it does that too. */
  readonly projector?: string | undefined;
  /** GGUF file of the model that drafts for it. */
  readonly draft?: string | undefined;
  /** Adapter files, laid over the model in this order. */
  readonly adapters: readonly string[];
  /** What the model is, where the GGUF only describes it. */
  readonly files?: readonly NamedFile[];
  /** The template of the model that is loaded first; others come by `template` messages. */
  readonly template: TemplateChoice;
  /** `auto`, or the name of a backend. */
  readonly backend: string;
  /** Layers on the GPU, the output counted as one; 0 keeps away from it; undefined: as many as there is room for. */
  readonly gpuLayers: number | undefined;
  /** Bytes that the model may take on the GPU; undefined: what there is. */
  readonly gpuMemory: number | undefined;
  /** Which kernels a GPU runs; undefined: `auto`. */
  readonly gpuKernels?: KernelChoice | undefined;
  /** Level of the SIMD kernels; undefined: the best of this machine. */
  readonly simdLevel?: string | undefined;
  /** How keys and values are kept; undefined: `f16`. */
  readonly kvType?: KvCacheType | undefined;
  /** `auto`: as `cacheMemory` allows. */
  readonly ctxLen: number | "auto";
  /** Bytes of the machine's memory that the KV cache may take. */
  readonly cacheMemory?: number | undefined;
  readonly slots: number;
  /** Prompt tokens of one run. */
  readonly chunk: number;
  /** 0: one per physical core. */
  readonly threads: number;
  readonly precise: boolean;
  readonly cacheDir: string | undefined;
  /** Bytes that snapshots of prefixes may take in that folder, of all models; undefined or 0: none are kept. */
  readonly snapshotBytes?: number | undefined;
}

/** The Go template that a model has beside the Jinja one in its file, and whether it wins; see `choosePrompt`. */
export interface TemplateChoice {
  readonly go: string | undefined;
  readonly prefersGo: boolean | undefined;
  /** Names of the model's configuration: see `engine/text/template/named.ts`. */
  readonly renderer?: string | undefined;
  readonly parser?: string | undefined;
}

/** What is known of a template, or what is wrong with it. */
export type TemplateReply = { readonly facts: TemplateFacts } | { readonly code: Code; readonly message: string };

/** The number of the template that comes with the load message. */
export const LOADED_TEMPLATE = 0;

/** What is put behind a rendered prompt: the beginning of an answer. */
export interface Ending {
  readonly text: string;
  /** Put before it where the prompt ends with `open`, blanks aside. */
  readonly inside?: { readonly open: string; readonly close: string };
}

interface Rendered {
  /** The number of a template that was defined before. */
  readonly template: number;
  /** The time that templates see. */
  readonly nowMs: number;
  /** Undefined: not said. */
  readonly think?: Think;
  readonly ending?: Ending;
}

/** With the files of its images. */
export interface AskedMessage extends PromptMessage {
  readonly images?: readonly Uint8Array[];
}

/** What a model is asked about, as the server knows it. */
export type Asked =
  /** Text with the markup of control tokens in it, after images and the ids of an earlier answer. */
  | {
      readonly kind: "text";
      readonly text: string;
      readonly images?: readonly Uint8Array[];
      readonly context: readonly number[];
      readonly ending?: Ending;
    }
  /** A gap between two texts without markup. */
  | { readonly kind: "gap"; readonly before: string; readonly after: string }
  /** A conversation: where it is too long, as few of its oldest messages as will do are left out. */
  | (Rendered & {
      readonly kind: "chat";
      readonly messages: readonly AskedMessage[];
      readonly tools?: readonly PromptTool[];
    })
  /** One question, after the ids of an earlier answer. */
  | (Rendered & {
      readonly kind: "question";
      readonly prompt: string;
      /** Before it. */
      readonly images?: readonly Uint8Array[];
      readonly suffix?: string;
      readonly system?: string;
      readonly history?: readonly PromptMessage[];
      readonly context: readonly number[];
    })
  /** The prompt of an earlier request that holds it, and more text. */
  | { readonly kind: "after"; readonly id: number; readonly text: string };

export interface GenerateMessage extends AnswerSettings {
  readonly kind: "generate";
  readonly id: number;
  readonly asked: Asked;
  /** The rendered prompt is kept until `forget`, for a request that continues it. */
  readonly holds?: boolean;
}

/** Answered by `embedded`, once or more often, or by `embedFailed`. */
export interface EmbedMessage {
  readonly kind: "embed";
  readonly id: number;
  /** At least one. */
  readonly inputs: readonly string[];
  /** The inputs are documents, and what is wanted is a score of each for this query. */
  readonly query?: string;
  /** Whether a text loses what the context has no room for, or fails the request. */
  readonly truncate: boolean;
  /** Tokens of a text, where that is less than the model was loaded for. */
  readonly ctxLen?: number;
}

/** Server → runner. */
export type ToRunner =
  | LoadMessage
  | GenerateMessage
  | EmbedMessage
  | { readonly kind: "cancel"; readonly id: number }
  /** Lets go of the prompt that a request holds. */
  | { readonly kind: "forget"; readonly id: number }
  /** Names a template by a number that is new; answered by `template`. */
  | {
      readonly kind: "template";
      readonly id: number;
      readonly number: number;
      readonly choice: TemplateChoice;
    }
  /** That template is named no more. */
  | { readonly kind: "drop"; readonly number: number }
  /** Asks how many tokens a whole prompt has; answered by `count`. */
  | { readonly kind: "count"; readonly id: number; readonly asked: Asked }
  /** Asks for the text of a prompt, cut as it would be for an answer with these settings; answered by `text`. */
  | {
      readonly kind: "render";
      readonly id: number;
      readonly asked: Asked;
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
  | { readonly kind: "events"; readonly events: readonly SequenceEvent[] }
  | EmbedEvent
  /** The process ends in a moment: nothing new can be asked of it. */
  | { readonly kind: "leaving" }
  /** Turns of the event loop that were taken so far, one after each step: the same number twice is one long step. */
  | { readonly kind: "pong"; readonly turns: number }
  /** What became of the images of a prompt. */
  | { readonly kind: "image"; readonly how: "encoded" | "reused" }
  | Reply;

/** What answers one question. */
export type Reply =
  | { readonly kind: "template"; readonly id: number; readonly reply: TemplateReply }
  | { readonly kind: "count"; readonly id: number; readonly tokens: number }
  | {
      readonly kind: "tokens";
      readonly id: number;
      readonly tokens: Int32Array;
      /** The bytes of each token, where they were asked for. */
      readonly pieces?: readonly Uint8Array[];
    }
  | { readonly kind: "text"; readonly id: number; readonly text: string }
  | {
      readonly kind: "refused";
      readonly id: number;
      readonly code: Code;
      readonly message: string;
    };
