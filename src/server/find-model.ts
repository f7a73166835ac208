/** The model that a request names: whether there is one, and whether it can do what is asked of it. */
import { AppError } from "../base/errors.ts";
import { quoteGo } from "../base/quote.ts";
import type { Think } from "../runtime/runtime.ts";
import type { Store, StoredModel } from "../store/store.ts";
import type { Inspect } from "./inspect.ts";

/** Throws `bad_request` where the name is malformed, `not_found` where there is no such model. */
export async function findModel(store: Store, name: string): Promise<StoredModel> {
  const model = name.trim() === "" ? undefined : await store.find(name);
  if (!model) throw new AppError("not_found", `model '${name}' not found`);
  return model;
}

/** Throws as `findModel`, and `bad_request` where a model shall think that cannot. */
export async function checkModel(
  { store, inspect }: { store: Store; inspect: Inspect },
  { model, think }: { model: string; think?: Think | undefined },
): Promise<void> {
  const stored = await findModel(store, model);
  if (!think) return;
  const facts = await inspect(stored);
  if (facts && !facts.capabilities.includes("thinking")) {
    throw new AppError("bad_request", `${quoteGo(model)} does not support thinking`);
  }
}

/** As `findModel`, in the words of the routes that embed. */
export async function checkPullable(store: Store, name: string): Promise<void> {
  if (name.trim() === "") throw new AppError("not_found", "model '' not found");
  if (!(await store.find(name)))
    throw new AppError("not_found", `model ${quoteGo(name)} not found, try pulling it first`);
}

/** Throws `bad_request` where no model was named. */
export function requireModel(name: string | undefined): string {
  if (!name?.trim()) throw new AppError("bad_request", "model is required");
  return name;
}
