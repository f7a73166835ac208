/** The adapters that requests choose: by number or name, or as set for all requests of a model that choose none. */
import { AppError } from "../../base/index.ts";
import type { AdapterChoice } from "../../engine/index.ts";
import type { ModelRef, StoredAdapter } from "../../library/portable.ts";
import type { AdapterFacts, AdapterScale } from "../requests/runtime.ts";

/** The adapters of a store, and the choices for requests without their own. */
export interface Adapters {
  /** The adapters of all models over a model's base, in the order of their numbers. */
  over(model: ModelRef): Promise<readonly StoredAdapter[]>;
  /** By model name. */
  readonly scales: Map<string, readonly AdapterChoice[]>;
}

export async function listAdapters({ over, scales }: Adapters, model: ModelRef): Promise<AdapterFacts[]> {
  const set = scales.get(model.displayName);
  return (await over(model)).map(({ path, model: { displayName: name } }, id) => {
    const own = model.paths.adapters.filter((each) => each === path).length;
    return { id, name, path, scale: set ? (set.find((each) => each.path === path)?.scale ?? 0) : own };
  });
}

/** Sets the adapters of requests that choose none. Throws `bad_request` as `choicesOf` does. */
export async function scaleAdapters(all: Adapters, model: ModelRef, chosen: readonly AdapterScale[]): Promise<void> {
  all.scales.set(model.displayName, await resolved(all, model, chosen));
}

/**
 * The choices of a request; undefined: the model's own adapters. Throws `bad_request` for an adapter that no model over
 * the same base has.
 */
export async function choicesOf(
  all: Adapters | undefined,
  model: ModelRef,
  chosen: readonly AdapterScale[] | undefined,
): Promise<readonly AdapterChoice[] | undefined> {
  return chosen ? resolved(all, model, chosen) : all?.scales.get(model.displayName);
}

async function resolved(
  adapters: Adapters | undefined,
  model: ModelRef,
  chosen: readonly AdapterScale[],
): Promise<readonly AdapterChoice[]> {
  const all = chosen.length > 0 ? ((await adapters?.over(model)) ?? []) : [];
  return chosen.flatMap((each) => found(each, all, model.displayName).map(({ path }) => ({ path, scale: each.scale })));
}

function found({ adapter }: AdapterScale, all: readonly StoredAdapter[], base: string): readonly StoredAdapter[] {
  const named = all.filter(({ model: { displayName: name } }, id) =>
    typeof adapter === "number" ? id === adapter : name === adapter || name === `${adapter}:latest`,
  );
  if (named.length > 0) return named;
  const there = all.length === 0 ? "it has none" : `expected 0 to ${all.length - 1}, or the name of a model`;
  throw new AppError("bad_request", `lora: no adapter ${JSON.stringify(adapter)} over the base of '${base}': ${there}`);
}
