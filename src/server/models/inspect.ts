/**
 * Facts from a model's GGUF file and templates: labels, lengths, capabilities. Read once per model and cached, because
 * a header may hold a vocabulary of 260,000 words, which is skipped.
 */
import { AppError, type Logger, messageOf } from "../../base/index.ts";
import { layersOf } from "../../library/index.ts";
import type { Store, StoredModel } from "../../library/portable.ts";
import type { ModelFacts } from "./model-facts.ts";

/** Maximum number of cached models; each costs about a kilobyte. */
export const KNOWN_MAX = 1024;

/** Undefined if the model's files cannot be read: it is listed without facts. */
export type Inspect = (model: StoredModel) => Promise<ModelFacts | undefined>;

export function makeInspect(parts: { store: Store; log: Logger }): Inspect {
  const known = new Map<string, Promise<ModelFacts>>(); // by digest of the manifest, least recently used first
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
      const level = isBroken ? "warn" : "debug"; // a model of an unsupported kind is not a fault
      parts.log[level]("model cannot be inspected", { model: model.displayName, error: messageOf(error) });
      return undefined;
    }
  };
}

/** Details of a model in listings: its configuration, with the file's values as defaults. */
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

/** Loads the parsers of model files and templates on first use. */
async function inspect(store: Store, model: StoredModel): Promise<ModelFacts> {
  const { readFacts } = await import("./model-facts.ts");
  return readFacts(await store.load(model.displayName));
}
