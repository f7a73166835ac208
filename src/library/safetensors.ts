/** Models whose layers are tensors of safetensors, for MLX: the manifest alone identifies them. */
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

/** Endings of tags whose models are of this kind; without one, the tag has a GGUF. */
const TAG_ENDING = /-(mlx|nvfp4|mxfp8|mxfp4|int4|int8|bf16)$/i;

/** What is wrong with such a model, and which tag would do. @param what the model, for people */
export function safetensorsText(what: string, name: ModelName): string {
  const shorter = name.tag.replace(TAG_ENDING, "");
  const tag = shorter === name.tag || shorter === "mlx" ? undefined : shorter;
  const other = tag === undefined ? "a tag with a GGUF" : `'${displayName(makeName({ ...name, tag }))}'`;
  return `${what} is made of safetensors for MLX, which cannot be run here: pull ${other} instead`;
}
