/** The configuration blob of a model: facts for model lists that need no weights, in the layout of other servers. */
import type { GgufDetails } from "./details.ts";
import type { Digest } from "./digest.ts";
import type { Layer } from "./manifest.ts";
import type { ModelConfig } from "./store.ts";

/** Fields of the configuration that no GGUF file has. */
export type ConfigExtras = Readonly<Record<string, string | number | readonly string[]>>;

interface ImageParts {
  /** Facts on the weights. */
  readonly details: GgufDetails;
  /** Architectures of further files, such as a projector's. */
  readonly otherFamilies?: readonly string[];
  readonly layers: readonly Pick<Layer, "digest">[];
  /** Override the file's values. */
  readonly extras: ConfigExtras;
}

export function imageConfig({ details, otherFamilies = [], layers, extras }: ImageParts): object {
  const config: ModelConfig = {
    model_format: details.format,
    model_family: details.family,
    model_families: [...new Set([details.family, ...otherFamilies])],
    model_type: details.parameterSize,
    file_type: details.fileType,
    ...(details.ctxLen === undefined ? {} : { context_length: details.ctxLen }),
    ...(details.embeddingLen === undefined ? {} : { embedding_length: details.embeddingLen }),
  };
  const architecture = process.arch === "arm64" ? "arm64" : "amd64";
  const digests: Digest[] = layers.map((layer) => layer.digest);
  return { ...config, ...extras, os: "linux", architecture, rootfs: { type: "layers", diff_ids: digests } };
}
