/** Which architecture a model file is of, and what is said where nothing here can run it. */
import { AppError } from "../base/index.ts";
import { type ModelHeader, readPart, repairHeader } from "../engine/formats/index.ts";

/** Whether models of an architecture can be run here. */
export type Runs = (architecture: string) => boolean | Promise<boolean>;

/** Throws `unsupported` for a file whose architecture can be run here, and which has what cannot. */
export type CheckModel = (file: { readonly label: string; readonly path: string }) => Promise<void>;

/** Of the arrays, those that repairs look at: one number for every layer. */
export const HEADER_ARRAY_ITEMS_MAX = 4096;

/** Throws `bad_file` where the file is no GGUF, or a damaged one. */
export async function readArchitecture(path: string): Promise<string> {
  const { header, fileBytes } = await readPart(path, { shard: 0, arrayItemsMax: HEADER_ARRAY_ITEMS_MAX });
  return architectureOf({ ...header, path, fileBytes });
}

/** The name after repairs: other converters have names of their own. */
export function architectureOf(header: ModelHeader): string {
  return nameIn(repaired(header)) ?? "none";
}

function repaired(header: ModelHeader): ModelHeader {
  try {
    return repairHeader(header);
  } catch (error) {
    if (error instanceof AppError) return header; // loading it says what is wrong
    throw error;
  }
}

function nameIn({ metadata }: ModelHeader): string | undefined {
  const name = metadata.get("general.architecture");
  return typeof name === "string" ? name : undefined;
}

export const unsupportedText = (what: string, architecture: string): string =>
  `${what}: models of the architecture '${architecture.slice(0, 40)}' cannot be run here yet`;
