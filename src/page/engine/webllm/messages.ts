/** What a page and WebLLM's Worker say to each other. One model per Worker: ending it frees what it took. */
import type { ModelFile } from "./fetch.ts";

export interface WebLlmLoad {
  readonly kind: "load";
  readonly model: string;
  /** Hex digest of the manifest: where the library believes the model to be, and keeps its files. */
  readonly digest: string;
  readonly files: readonly ModelFile[];
  readonly headers: Readonly<Record<string, string>>;
  /** Undefined: as the model was compiled. */
  readonly ctxLen?: number;
}

export type ToWebLlm =
  | WebLlmLoad
  /** Answered by `text`, any number of times, and by `done` or `failed`. */
  | {
      readonly kind: "chat";
      readonly messages: readonly { readonly role: string; readonly content: string }[];
      /** In the words of the library. */
      readonly settings: Readonly<Record<string, number>>;
    }
  | { readonly kind: "stop" };

export type FromWebLlm =
  | { readonly kind: "progress"; readonly text: string; readonly fraction: number }
  | { readonly kind: "loaded"; readonly ctxLen: number | undefined }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "done"; readonly reason: string; readonly promptTokens: number; readonly tokens: number }
  | { readonly kind: "failed"; readonly message: string };
