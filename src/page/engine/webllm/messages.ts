/** Messages between a page and WebLLM's Worker. One model per Worker: ending it frees its memory. */
import type { ModelFile } from "./fetch.ts";

export interface WebLlmLoad {
  readonly kind: "load";
  readonly model: string;
  /** Hex digest of the manifest: part of the model's URL, and of its files' place in storage. */
  readonly digest: string;
  readonly files: readonly ModelFile[];
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined: the compiled length. */
  readonly ctxLen?: number;
}

export type ToWebLlm =
  | WebLlmLoad
  /** Answered by `text`, any number of times, and by `done` or `failed`. */
  | {
      readonly kind: "chat";
      readonly messages: readonly { readonly role: string; readonly content: string }[];
      /** By the library's names. */
      readonly settings: Readonly<Record<string, number>>;
    }
  | { readonly kind: "stop" };

export type FromWebLlm =
  | { readonly kind: "progress"; readonly text: string; readonly fraction: number }
  | { readonly kind: "loaded"; readonly ctxLen: number | undefined }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "done"; readonly reason: string; readonly promptTokens: number; readonly tokens: number }
  | { readonly kind: "failed"; readonly message: string };
