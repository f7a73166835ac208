/**
 * What only the GGUF file and the templates of a model can tell: labels, lengths, capabilities. Read once per model and
 * remembered, for a header may hold a vocabulary of 260,000 words, which is stepped over.
 */
import { AppError, messageOf } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import { statedPooling } from "../engine/pooling.ts";
import { RANK } from "../engine/rank-head.ts";
import type { Metadata, ModelHeader } from "../gguf/gguf.ts";
import { readHeader } from "../files/header.ts";
import { projectorHeader, repairHeader } from "../gguf/repair/index.ts";
import { describeGguf, type GgufDetails } from "../store/details.ts";
import { layersOf } from "../store/manifest.ts";
import type { ModelEntry, Store, StoredModel } from "../store/store.ts";
import { canFill } from "../tokenizer/fill-in-the-middle.ts";
import { projectorKind } from "../vision/clip.ts";
import { hasProjector } from "../vision/projectors/index.ts";
import { effectiveTemplate } from "./ollama/effective-template.ts";

/** Models that are remembered; each costs about a kilobyte. */
export const KNOWN_MAX = 1024;

export interface ModelFacts {
  readonly gguf: GgufDetails;
  /** `completion`, `vision`, `tools`, `insert`, `embedding`, `thinking`. What nothing here can do, no model claims. */
  readonly capabilities: readonly string[];
}

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

async function inspect(store: Store, model: StoredModel): Promise<ModelFacts> {
  const entry = await store.load(model.displayName);
  const file = await readHeader(entry.paths.model, { arrayItemsMax: onlyTokens });
  const header = repairHeader(file);
  const sees = await seesImages(entry, file);
  return { gguf: describeGguf(header), capabilities: capabilitiesOf(entry, header.metadata, { sees }) };
}

/** Whether a runner of the model would take images: by a projector file, or by what lies in the model's own. */
async function seesImages({ paths: { projectors } }: ModelEntry, file: ModelHeader): Promise<boolean> {
  const [path] = projectors;
  const header = path === undefined ? file : await readHeader(path, { arrayItemsMax: 0 });
  try {
    const projector = projectorHeader(header);
    return projector !== undefined && hasProjector(projectorKind(projector.metadata));
  } catch (error) {
    if (error instanceof AppError && error.code === "bad_file") return false; // its text may be sound
    throw error;
  }
}

/** Models that can fill in the middle are known by their tokens. */
const onlyTokens = (key: string): number => (key === "tokenizer.ggml.tokens" ? Infinity : 0);

/** What a configuration may say and only the files can tell: clients offer by it what may be refused. */
const UNSERVED: ReadonlySet<string> = new Set(["vision", "audio", "image"]);

/** In the order in which clients are used to seeing them. */
function capabilitiesOf(entry: ModelEntry, metadata: Metadata, { sees }: { sees: boolean }): string[] {
  const pooling = statedPooling(metadata, String(metadata.get("general.architecture")));
  const { native, capabilities } = effectiveTemplate(entry, metadata);
  const fromTemplate = (["tools", "insert", "thinking"] as const).filter(
    (name) => capabilities[name] || (name === "insert" && canFill(metadata)),
  );
  const found = [
    ...(entry.config.capabilities ?? []).filter((name) => !UNSERVED.has(name)),
    ...(native ? fromTemplate : []),
    pooling === undefined ? "completion" : "embedding",
    ...(sees ? ["vision"] : []),
    ...(pooling === RANK ? ["rerank"] : []),
    ...(native ? [] : fromTemplate),
  ];
  return [...new Set(found)];
}
