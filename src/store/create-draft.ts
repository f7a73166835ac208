/** The draft model of a new model: held against the model, whose vocabulary it must have. */
import { AppError } from "../base/errors.ts";
import { readPart } from "../files/header.ts";
import type { Metadata } from "../gguf/gguf.ts";
import { vocabularyDifference } from "../tokenizer/same-vocabulary.ts";
import { readBase } from "./create-base.ts";
import type { CreateParts, Progress } from "./creation.ts";
import type { Digest } from "./digest.ts";
import { layersOf } from "./manifest.ts";
import type { FileTypeName } from "./quantize-mix.ts";
import { checkWeights, quantizeWeights, type Weights } from "./quantize-weights.ts";
import { blobSource, inspectSource, type InspectedSource, type Source } from "./sources.ts";

/**
 * Throws `bad_request` where it is no model, or has another vocabulary; `not_found` where there is none of that name.
 * @param borrowed gets the blobs that only another store had until now
 */
export async function inspectDraft(
  { root, others }: Pick<CreateParts, "root" | "others">,
  { draft, model, borrowed }: { draft: Source | string; model: Weights; borrowed: Digest[] },
): Promise<InspectedSource> {
  const source = typeof draft === "string" ? await namedSource({ root, others }, draft, borrowed) : draft;
  const inspected = await inspectSource(source);
  const { label, kind, part, path } = inspected;
  if (kind !== "model" || part) {
    const found = part ? "a part of one" : `a file of kind '${kind}'`;
    throw new AppError("bad_request", `DRAFT ${label}: expected a whole GGUF model, got ${found}`);
  }
  const own = await metadataAt(model.paths[0]!); // one part at least
  const difference = vocabularyDifference(own, await metadataAt(path));
  if (difference !== undefined) throw new AppError("bad_request", `DRAFT ${label}: ${difference}`);
  return { ...inspected, kind: "draft" };
}

/**
 * The draft as a blob of another type; itself where that is its type already, or none is asked for. Throws
 * `bad_request` where it is quantized, `storage` where the disk is full, `cancelled`.
 * @param made gets the blob
 */
export async function* quantizeDraft(
  { root, inTurn, signal }: CreateParts,
  { draft, type, made }: { draft: InspectedSource; type: FileTypeName | undefined; made: Digest[] },
): AsyncGenerator<Progress, InspectedSource, void> {
  const { label, path } = draft;
  const { fileType } = draft.details;
  if (type === undefined || type === fileType) return draft;
  const weights = { label, paths: [path], fileType };
  await checkWeights(weights).catch((error: unknown) => {
    const text = `draft quantization requires an unquantized draft model, got ${fileType}`;
    throw new AppError("bad_request", text, { cause: error });
  });
  const { blob, isNew } = yield* quantizeWeights(root, { weights, type, inTurn, signal });
  if (isNew) made.push(blob.digest);
  const quantized = await inspectSource(blobSource(root, { label, digest: blob.digest }));
  return { ...quantized, isNew, kind: "draft" };
}

async function namedSource(
  parts: Pick<CreateParts, "root" | "others">,
  name: string,
  borrowed: Digest[],
): Promise<Source> {
  const base = await readBase(parts, name, borrowed);
  const [layer] = layersOf(base.layers, "model");
  if (!layer) throw new AppError("bad_request", `DRAFT ${name}: expected a model with weights, found none`);
  return blobSource(parts.root, { label: base.name, digest: layer.digest });
}

const metadataAt = async (path: string): Promise<Metadata> => (await readPart(path, { shard: 0 })).header.metadata;
