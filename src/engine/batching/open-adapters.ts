/**
 * Opens a model's adapters. If a backend supports different adapters per row, requests choose them, also from the
 * adapters of other models over the same base; else the model's own ones apply to every request.
 */
import { AppError, backendTraits } from "../../base/index.ts";
import { applyAdapters, checkOffer, offerAdapters } from "../architectures/index.ts";
import type { Program } from "../program/backend.ts";
import type { Gguf } from "../formats/gguf/gguf.ts";
import { openGgufFrom } from "../formats/gguf/read.ts";
import type { OpenSource } from "../formats/gguf/source.ts";

/** Maximum bytes of other models' adapters on a GPU, where all are uploaded: a share of the base's, or `leastBytes`. */
const GPU_OFFERS = { share: 1 / 16, leastBytes: 64 * 2 ** 20 };

interface AdapterOptions {
  /** The model's own adapters, in the order of application. */
  readonly adapters?: readonly string[] | undefined;
  /** Adapters of other models over the same base; undefined: requests choose none. */
  readonly offers?: readonly string[] | undefined;
  readonly backend: { readonly name: string };
  readonly open: OpenSource;
  /** Opens other models' adapters. */
  readonly openAside: OpenSource;
}

export interface OpenedAdapters {
  readonly program: Program;
  /** The files; the caller closes them. */
  readonly files: readonly Gguf[];
  /** Paths of the adapters that apply to every request. */
  readonly fixed: readonly string[];
}

/**
 * Throws `bad_file` or `unsupported` if one of the model's own adapters cannot be used; leaves out unusable adapters of
 * other models.
 */
export function openAdapters(program: Program, gguf: Gguf, options: AdapterOptions): OpenedAdapters {
  const { adapters = [], offers, backend, open, openAside } = options;
  const files: Gguf[] = [];
  try {
    for (const path of adapters) files.push(openGgufFrom(open, path));
    const mayChoose = program.logits !== undefined && !program.diffusion;
    const chooses = offers !== undefined && mayChoose && backendTraits(backend.name).adaptersByRow;
    if (!chooses || !files.every((file) => mayOffer(program, gguf, file))) {
      return { program: applyAdapters(program, gguf, files), files, fixed: adapters };
    }
    const { share, leastBytes } = GPU_OFFERS;
    let room = backendTraits(backend.name).onGpu ? Math.max(leastBytes, share * gguf.fileBytes) : Infinity;
    for (const path of offers) {
      const file = adapters.includes(path) ? undefined : openIfPossible(openAside, path);
      if (!file) continue;
      if (file.fileBytes <= room && mayOffer(program, gguf, file)) {
        files.push(file);
        room -= file.fileBytes;
      } else file.close();
    }
    return { program: offerAdapters(program, gguf, files), files, fixed: [] };
  } catch (error) {
    for (const file of files) file.close();
    throw error;
  }
}

function mayOffer(program: Program, gguf: Gguf, file: Gguf): boolean {
  try {
    checkOffer(program, gguf, file);
    return true;
  } catch (error) {
    if (error instanceof AppError) return false;
    throw error;
  }
}

/** Undefined if the file is missing or damaged: only its own model needs it. */
function openIfPossible(open: OpenSource, path: string): Gguf | undefined {
  try {
    return openGgufFrom(open, path);
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}
