/** The model that a request names: whether there is one, and whether it can do what is asked of it. */
import { AppError, type Logger, quoteGo } from "../base/index.ts";
import type { Think } from "../runtime/portable.ts";
import type { ModelRef, Store } from "../library/portable.ts";
import type { Inspect } from "./inspect.ts";

/** Throws `bad_request` where the name is malformed, `not_found` where there is no such model. */
export async function findModel(store: Pick<Store, "resolve">, name: string): Promise<ModelRef> {
  const model = name.trim() === "" ? undefined : await store.resolve(name);
  if (!model) throw new AppError("not_found", `model '${name}' not found`);
  return model;
}

/** As `findModel`; throws `bad_request` too, where a model shall think that cannot. */
export async function findThinker(
  { store, inspect }: { store: Store; inspect: Inspect },
  { model, think }: { model: string; think?: Think | undefined },
): Promise<ModelRef> {
  const ref = await findModel(store, model);
  if (!think) return ref;
  const facts = await inspect(ref);
  if (facts && !facts.capabilities.includes("thinking")) {
    throw new AppError("bad_request", `${quoteGo(model)} does not support thinking`);
  }
  return ref;
}

/** Characters of a wish that the log shows. */
const WISH_SHOWN = 80;

interface ThinkWish {
  readonly model: string;
  /** The wish as the runtime knows it; undefined if it is unknown. */
  readonly think: Think | undefined;
  /** As the request has it. */
  readonly said: unknown;
}

/**
 * As `findModel`; drops a wish for thinking if the model cannot think. It is not an error, because clients have one
 * setting for all models.
 */
export async function findWisher(
  { store, inspect, log }: { store: Store; inspect: Inspect; log: Logger },
  { model, think, said }: ThinkWish,
): Promise<{ readonly ref: ModelRef; readonly think?: Think }> {
  const ref = await findModel(store, model);
  const facts = think ? await inspect(ref) : undefined;
  if (think !== undefined && (!facts || facts.capabilities.includes("thinking"))) return { ref, think };
  if (said !== undefined && said !== "") {
    const wish = JSON.stringify(said).slice(0, WISH_SHOWN);
    log.debug("a wish for thinking changes nothing", { model, wish });
  }
  return { ref };
}

/** As `findModel`, in the words of the routes that embed. */
export async function findEmbedder(store: Store, name: string): Promise<ModelRef> {
  if (name.trim() === "") throw new AppError("not_found", "model '' not found");
  const model = await store.resolve(name);
  if (!model) throw new AppError("not_found", `model ${quoteGo(name)} not found, try pulling it first`);
  return model;
}

/** Throws `bad_request` where no model was named. */
export function requireModel(name: string | undefined): string {
  if (!name?.trim()) throw new AppError("bad_request", "model is required");
  return name;
}
