/** Opens a draft model: on the same backend, with its own cache. */
import { loadProgram } from "../architectures/index.ts";
import type { Backend, LoadOptions, Program } from "../program/backend.ts";
import { withoutMemory } from "../program/memory.ts";
import { loadOptionsFor } from "../backends/small.ts";
import { AppError, messageOf } from "../../base/index.ts";
import type { Gguf } from "../formats/gguf/gguf.ts";
import { getNumber } from "../formats/gguf/keys.ts";
import { openGgufFrom } from "../formats/gguf/read.ts";
import { repairGguf } from "../formats/gguf/repair/index.ts";
import type { OpenSource } from "../formats/gguf/source.ts";
import { vocabularyDifference } from "../text/tokenizer/same-vocabulary.ts";
import type { DraftModel } from "./draft.ts";

/** A loaded draft model, or the reason why it is not usable. */
type OpenedDraft =
  | { readonly program: Program; readonly ctxLenMax: number; readonly close: () => void; readonly unused?: undefined }
  | { readonly unused: string };

/** The draft model, or the reason why it is unused. */
export interface LoadedDraft {
  readonly model?: DraftModel;
  readonly unused?: string;
}

/** Errors of a draft model are reported, not thrown: a model answers without it, too. */
export function openDraft(
  path: string | undefined,
  { model, open }: { model: Gguf; open: OpenSource },
): OpenedDraft | undefined {
  if (path === undefined) return undefined;
  let file: Gguf | undefined;
  try {
    file = repairGguf(openGgufFrom(open, path));
    const program = withoutMemory(loadProgram(file, []));
    const difference = vocabularyDifference(model.metadata, file.metadata);
    if (!program.logits) throw new AppError("unsupported", `${path}: expected a model that generates, got an encoder`);
    if (difference !== undefined) throw new AppError("bad_file", `${path}: ${difference}`);
    const ctxLenMax = getNumber(file.metadata, `${program.shape.arch}.context_length`, Infinity);
    return { program, ctxLenMax, close: () => file?.close() };
  } catch (error) {
    file?.close();
    return { unused: messageOf(error) };
  }
}

/** Loads the draft model if the model's session can verify drafts; else `unused` has the reason. */
export async function loadDraft(
  opened: OpenedDraft,
  { backend, verifies, ...options }: LoadOptions & { readonly backend: Backend; readonly verifies: boolean },
): Promise<LoadedDraft> {
  if (opened.unused !== undefined) return { unused: opened.unused };
  const { program, ctxLenMax, close } = opened;
  const path = program.weights.path;
  try {
    if (!verifies) throw new AppError("unsupported", `${path}: the model's tokens cannot be drafted on this backend`);
    const lacks = backend.missing?.(program) ?? [];
    if (lacks.length > 0) throw new AppError("unsupported", `${path}: the backend lacks ${lacks.join(", ")}`);
    const ctxLen = Math.min(options.ctxLen, ctxLenMax);
    const session = await backend.load(program, loadOptionsFor(program, { ...options, ctxLen, onProgress: () => {} }));
    if (!session.checkpoints) return { model: { session, vocabSize: program.shape.vocabSize, ctxLen } };
    session.close();
    throw new AppError("unsupported", `${path}: expected a model of keys and values, got one with recurrent states`);
  } catch (error) {
    close();
    if (error instanceof AppError && error.code === "cancelled") throw error;
    return { unused: messageOf(error) };
  }
}
