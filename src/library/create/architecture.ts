/** The architecture of a model file, and the error if nothing here can run it. */
import { AppError } from "../../base/index.ts";
import { type ModelHeader, readPart, repairHeader } from "../../engine/formats/index.ts";

/** Returns whether models of an architecture can run here. */
export type Runs = (architecture: string) => boolean | Promise<boolean>;

/** Throws `unsupported` for a file of a supported architecture with an unsupported feature. */
export type CheckModel = (file: { readonly label: string; readonly path: string }) => Promise<void>;

/** Maximum array length: one item per layer is all that repairs read. */
export const HEADER_ARRAY_ITEMS_MAX = 4096;

/** Throws `bad_file` if the file is not a GGUF, or a damaged one. */
export async function readArchitecture(path: string): Promise<string> {
  const { header, fileBytes } = await readPart(path, { shard: 0, arrayItemsMax: HEADER_ARRAY_ITEMS_MAX });
  return architectureOf({ ...header, path, fileBytes });
}

/** The name after repairs: other converters use other names. */
export function architectureOf(header: ModelHeader): string {
  return nameIn(repaired(header)) ?? "none";
}

function repaired(header: ModelHeader): ModelHeader {
  try {
    return repairHeader(header);
  } catch (error) {
    if (error instanceof AppError) return header; // loading reports the error
    throw error;
  }
}

function nameIn({ metadata }: ModelHeader): string | undefined {
  const name = metadata.get("general.architecture");
  return typeof name === "string" ? name : undefined;
}

export const unsupportedText = (what: string, architecture: string): string =>
  `${what}: models of the architecture '${architecture.slice(0, 40)}' cannot be run here yet`;
