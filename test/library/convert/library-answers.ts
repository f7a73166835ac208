/** Results of `@huggingface/transformers` for folders of ONNX, in a separate process. */
import { join } from "node:path";

export interface LibraryQuestions {
  /** Folders. */
  readonly llama: string;
  readonly encoder: string;
  readonly prompt: string;
  readonly messages: readonly object[];
  readonly inputs: readonly string[];
  readonly tokens: number;
}

export interface LibraryAnswers {
  readonly text: string;
  readonly promptTokens: number;
  readonly chatText: string;
  readonly chatTokens: number;
  /** One per input, mean-pooled, of unit length. */
  readonly embeddings: readonly (readonly number[])[];
}

/** Native code sends telemetry unless its real environment turns that off: hence the process. */
export async function byLibrary(questions: LibraryQuestions): Promise<LibraryAnswers> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "library-answers-child.ts")], {
    env: { ...process.env, ORT_DISABLE_TELEMETRY: "1" },
    stdin: new Blob([JSON.stringify(questions)]),
    stdout: "pipe",
    stderr: "inherit",
  });
  return JSON.parse(await child.stdout.text()) as LibraryAnswers;
}
