/**
 * What only the GGUF file and the templates of a model can tell: labels, lengths, capabilities. Read once per model and
 * remembered, for a header may hold a vocabulary of 260,000 words, which is stepped over.
 */
import { AppError, type Logger, messageOf } from "../base/index.ts";
import { layersOf } from "../library/index.ts";
import type { Store, StoredModel } from "../library/portable.ts";
import type { ModelFacts } from "./model-facts.ts";

/** Models that are remembered; each costs about a kilobyte. */
export const KNOWN_MAX = 1024;

/** undefined where the model's files cannot be read: it can be listed, but nothing more is known. */
export type Inspect = (model: StoredModel) => Promise<ModelFacts | undefined>;

export function makeInspect(parts: { store: Store; log: Logger }): Inspect {
  const known = new Map<string, Promise<ModelFacts>>(); // by digest of the manifest, used last at the end
  return async (model) => {
    const facts = known.get(model.digest) ?? inspect(parts.store, model);
    known.delete(model.digest);
    known.set(model.digest, facts);
    if (known.size > KNOWN_MAX) known.delete(known.keys().next().value!); // not empty
    try {
      return await facts;
    } catch (error) {
      known.delete(model.digest); // its files may be repaired
      const isBroken = error instanceof AppError && error.code === "bad_file";
      const level = isBroken ? "warn" : "debug"; // models that we cannot serve are none of the operator's business
      parts.log[level]("model cannot be inspected", { model: model.displayName, error: messageOf(error) });
      return undefined;
    }
  };
}

/** What listings say of a model: its configuration, and the file where that is silent. */
export function modelDetails(model: StoredModel, facts: ModelFacts | undefined) {
  const { config } = model;
  const family = config.model_family || facts?.gguf.family || "";
  const [weights] = layersOf(model.layers, "model");
  return {
    parent_model: weights?.from ?? "",
    format: config.model_format ?? "gguf",
    family,
    families: config.model_families ?? (family ? [family] : null),
    parameter_size: config.model_type || facts?.gguf.parameterSize || "",
    quantization_level:
      config.file_type && config.file_type !== "unknown" ? config.file_type : (facts?.gguf.fileType ?? ""),
  };
}

/** What reads model files and templates is loaded with the first model that somebody asks about. */
async function inspect(store: Store, model: StoredModel): Promise<ModelFacts> {
  const { readFacts } = await import("./model-facts.ts");
  return readFacts(await store.load(model.displayName));
}
