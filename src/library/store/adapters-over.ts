/** The adapters that models of a store have over one base. */
import { blobPath } from "./blobs.ts";
import { layersOf } from "./manifest.ts";
import type { StoredModel } from "./store.ts";

export interface StoredAdapter {
  readonly path: string;
  readonly bytes: number;
  /** The model that it belongs to, the first by name if there are several. */
  readonly model: StoredModel;
}

type Base = Pick<StoredModel, "layers">;

const baseOf = ({ layers }: Base): string | undefined => layersOf(layers, "model")[0]?.digest;

/** The adapters of all models with this model's base, by name, each file once. */
export function adaptersOver(models: readonly StoredModel[], base: Base): StoredAdapter[] {
  const digest = baseOf(base);
  const found = new Map<string, StoredAdapter>();
  const named = models.toSorted((a, b) => (a.displayName < b.displayName ? -1 : 1));
  for (const model of named) {
    if (digest === undefined || baseOf(model) !== digest) continue;
    for (const { digest: adapter, size } of layersOf(model.layers, "adapter")) {
      const path = blobPath(model.root, adapter);
      if (!found.has(path)) found.set(path, { path, bytes: size, model });
    }
  }
  return [...found.values()];
}

/** The model without adapters that a model with adapters was made of; undefined if it is not in the store. */
export function parentOf(models: readonly StoredModel[], model: StoredModel): StoredModel | undefined {
  if (layersOf(model.layers, "adapter").length === 0) return undefined;
  const [weights] = layersOf(model.layers, "model");
  const bare = models.filter((each) => layersOf(each.layers, "adapter").length === 0 && baseOf(each) === baseOf(model));
  const named = bare.find(({ displayName }) => displayName === weights?.from);
  return named ?? bare.toSorted((a, b) => (a.displayName < b.displayName ? -1 : 1))[0];
}
