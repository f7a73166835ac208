/** The draft model of a new model: it must have the model's vocabulary. */
import { AppError } from "../../base/index.ts";
import { type Metadata, readPart } from "../../engine/formats/index.ts";
import { vocabularyDifference } from "../../engine/text/index.ts";
import type { Claims } from "../store/claims.ts";
import { readBase } from "./create-base.ts";
import type { CreateParts, Progress } from "./creation.ts";
import { layersOf } from "../store/manifest.ts";
import type { FileTypeName } from "./quantize-mix.ts";
import { checkWeights, quantizeWeights, type Weights } from "./quantize-weights.ts";
import { blobSource, inspectSource, type InspectedSource, type Source } from "./sources.ts";

/**
 * Throws `bad_request` if the draft is not a model or has another vocabulary, and `not_found` if the name does not
 * exist.
 * @param options.claims receives the blobs of a model in another store
 */
export async function inspectDraft(
  { root, others }: Pick<CreateParts, "root" | "others">,
  { draft, model, claims }: { draft: Source | string; model: Weights; claims: Claims },
): Promise<InspectedSource> {
  const source = typeof draft === "string" ? await namedSource({ root, others }, draft, claims) : draft;
  const inspected = await inspectSource(source);
  const { label, kind, part, path } = inspected;
  if (kind !== "model" || part) {
    const found = part ? "a part of one" : `a file of kind '${kind}'`;
    throw new AppError("bad_request", `DRAFT ${label}: expected a whole GGUF model, got ${found}`);
  }
  const own = await metadataAt(model.paths[0]!); // at least one part
  const difference = vocabularyDifference(own, await metadataAt(path));
  if (difference !== undefined) throw new AppError("bad_request", `DRAFT ${label}: ${difference}`);
  return { ...inspected, kind: "draft" };
}

/**
 * The draft as a blob of the requested type; unchanged if it has that type or none is requested. Throws `bad_request`
 * if it is quantized already, `storage` if the disk is full, and `cancelled`.
 */
export async function* quantizeDraft(
  { root, inTurn, signal }: CreateParts,
  { draft, type, claims }: { draft: InspectedSource; type: FileTypeName | undefined; claims: Claims },
): AsyncGenerator<Progress, InspectedSource, void> {
  const { label, path } = draft;
  const { fileType } = draft.details;
  if (type === undefined || type === fileType) return draft;
  const weights = { label, paths: [path], fileType };
  await checkWeights(weights).catch((error: unknown) => {
    const text = `draft quantization requires an unquantized draft model, got ${fileType}`;
    throw new AppError("bad_request", text, { cause: error });
  });
  const { blob, isNew } = yield* quantizeWeights(root, { weights, type, claims, inTurn, signal });
  const quantized = await inspectSource(blobSource(root, { label, digest: blob.digest }));
  return { ...quantized, isNew, kind: "draft" };
}

async function namedSource(parts: Pick<CreateParts, "root" | "others">, name: string, claims: Claims): Promise<Source> {
  const base = await readBase(parts, name, claims);
  const [layer] = layersOf(base.layers, "model");
  if (!layer) throw new AppError("bad_request", `DRAFT ${name}: expected a model with weights, found none`);
  return blobSource(parts.root, { label: base.name, digest: layer.digest });
}

const metadataAt = async (path: string): Promise<Metadata> => (await readPart(path, { shard: 0 })).header.metadata;
