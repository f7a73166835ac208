/** Stored models whose weights are in memory. */
import type { LoadedModel, Runtime } from "../../runtime/portable.ts";
import type { Store } from "../../library/portable.ts";

type Weights = Pick<LoadedModel, "paths">;

/** The states that llama-server's router gives its models. */
export type LoadStatus = "loaded" | "loading" | "unloaded";

/** Names that share weights share their state. @param name as `displayName` */
export async function loadStatus(
  { store, runtime }: { readonly store: Store; readonly runtime: Pick<Runtime, "loaded" | "activity"> },
  name: string,
): Promise<LoadStatus> {
  const ready = runtime.loaded();
  if (ready.some((model) => model.name === name)) return "loaded";
  if (runtime.activity().models.some((model) => model.name === name && !model.isLoaded)) return "loading";
  for (const model of ready) if (await isStoredAs(store, name, model)) return "loaded";
  return "unloaded";
}

/** Returns whether a name of the store stands for these weights and adapters; false for a missing or broken one. */
export async function isStoredAs(store: Store, name: string, { paths }: Weights): Promise<boolean> {
  const found = await store.find(name).then(
    (there) => there && store.resolve(name),
    () => undefined,
  );
  return found !== undefined && keyOf(found.paths) === keyOf(paths);
}

const keyOf = ({ model, adapters, files }: Weights["paths"]): string => JSON.stringify([model, adapters, files]);
