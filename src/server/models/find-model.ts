/** Finds the model that a request names, and checks its capabilities. */
import { AppError, type Logger } from "../../base/index.ts";
import type { Runtime, Think } from "../../runtime/portable.ts";
import type { ModelRef, Store } from "../../library/portable.ts";
import type { Inspect } from "./inspect.ts";

/** Throws `bad_request` for a malformed name, `not_found` for an unknown model. */
export async function findModel(store: Pick<Store, "resolve">, name: string): Promise<ModelRef> {
  const model = name.trim() === "" ? undefined : await store.resolve(name);
  if (!model) throw new AppError("not_found", `model '${name}' not found`);
  return model;
}

/** Like `findModel`; also throws `bad_request` if the request demands thinking of a model that cannot think. */
export async function findThinker(
  { store, inspect }: { store: Store; inspect: Inspect },
  { model, think }: { model: string; think?: Think | undefined },
): Promise<ModelRef> {
  const ref = await findModel(store, model);
  if (!think) return ref;
  const facts = await inspect(ref);
  if (facts && !facts.capabilities.includes("thinking")) {
    throw new AppError("bad_request", `${JSON.stringify(model)} does not support thinking`);
  }
  return ref;
}

/** Characters of an unknown value in the log. */
const LEVEL_SHOWN = 80;

interface LevelRequest {
  readonly model: string;
  /** The requested level; undefined if it is unknown. */
  readonly think: Think | undefined;
  /** The value in the request. */
  readonly said: unknown;
}

/**
 * Like `findModel`, but drops the thinking level if the model cannot think. That is not an error, because clients have
 * one setting for all models.
 */
export async function findWithLevel(
  { store, inspect, log }: { store: Store; inspect: Inspect; log: Logger },
  { model, think, said }: LevelRequest,
): Promise<{ readonly ref: ModelRef; readonly think?: Think }> {
  const ref = await findModel(store, model);
  const facts = think ? await inspect(ref) : undefined;
  if (think !== undefined && (!facts || facts.capabilities.includes("thinking"))) return { ref, think };
  if (said !== undefined && said !== "") {
    const level = JSON.stringify(said).slice(0, LEVEL_SHOWN);
    log.debug("ignored the thinking level: the model cannot think", { model, think: level });
  }
  return { ref };
}

/** Like `findModel`, with the error texts of the embedding routes. */
export async function findEmbedder(store: Store, name: string): Promise<ModelRef> {
  if (name.trim() === "") throw new AppError("not_found", "model '' not found");
  const model = await store.resolve(name);
  if (!model) throw new AppError("not_found", `model ${JSON.stringify(name)} not found, try pulling it first`);
  return model;
}

/** The model that clients of llama-server mean, which name none: the one in memory that expires last. */
export const loadedModel = ({ runtime }: { runtime: Pick<Runtime, "loaded"> }): string | undefined =>
  runtime.loaded()[0]?.name;

/** Throws `bad_request` if the name is missing. */
export function requireModel(name: string | undefined): string {
  if (!name?.trim()) throw new AppError("bad_request", "model is required");
  return name;
}
