/** Models whose layers are safetensors tensors, for MLX: recognised by the manifest alone. */
import type { Layer } from "./manifest.ts";
import { displayName, makeName, type ModelName } from "./name.ts";

const TENSOR_TYPE = "application/vnd.ollama.image.tensor";

interface Described {
  readonly layers: readonly Layer[];
  readonly config?: { readonly model_format?: string };
}

export function isSafetensors({ layers, config }: Described): boolean {
  return config?.model_format === "safetensors" || layers.some(({ mediaType }) => mediaType === TENSOR_TYPE);
}

/** Suffixes of tags of such models; without a suffix, the tag has a GGUF. */
const TAG_ENDING = /-(mlx|nvfp4|mxfp8|mxfp4|int4|int8|bf16)$/i;

/** The error for such a model, with a tag that works. @param what the model, in the words of the text */
export function safetensorsText(what: string, name: ModelName): string {
  const shorter = name.tag.replace(TAG_ENDING, "");
  const tag = shorter === name.tag || shorter === "mlx" ? undefined : shorter;
  const other = tag === undefined ? "a tag with a GGUF" : `'${displayName(makeName({ ...name, tag }))}'`;
  return `${what} is made of safetensors for MLX, which cannot be run here: pull ${other} instead`;
}
