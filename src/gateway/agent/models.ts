/**
 * Resolves a model reference: an alias of `agents.defaults.models`, or a model of the store. A list there limits the
 * models that requests may name; the configured default is always allowed. It is checked before a request is accepted,
 * and again when its turn begins; there is no silent fallback.
 */
import { AppError } from "../../base/index.ts";
import { displayName, parseReference } from "../../library/portable.ts";
import type { AgentsConfig } from "./config.ts";

export type ModelAnswer = { readonly model: string } | { readonly error: ModelProblem };

export interface ModelProblem {
  readonly code: "model_unknown" | "model_not_allowed";
  readonly message: string;
  /** The model's name, an alias resolved. */
  readonly name: string;
}

/** The models that turns can run on. */
export interface ModelSource {
  /** Display names of the models in the store. */
  readonly modelNames: () => Promise<readonly string[]>;
  /** True if a model that is not in the store is pulled at its first use; absent: never. */
  readonly isOffered?: ((name: string) => Promise<boolean>) | undefined;
  /** True if a model of the store generates text; absent: unknown. */
  readonly canChat?: ((name: string) => Promise<boolean>) | undefined;
  /** Address of the server that has the models; absent: they are in this machine's store. */
  readonly server?: string | undefined;
}

export interface ModelQuestion {
  readonly agents: AgentsConfig;
  /** Display names of the models in the store. */
  readonly names: readonly string[];
  /** The name as requested; undefined: the default. */
  readonly reference: string | undefined;
  /** The agent's own default model. */
  readonly fallback?: string | undefined;
}

/** @returns the store's own spelling of the model's name */
export function resolveModel({ agents, names, reference, fallback }: ModelQuestion): ModelAnswer {
  const { model: standard, models } = agents.defaults;
  const asked = reference?.trim() || fallback || standard;
  const wanted = aliasOf(models, asked) ?? asked;
  const name = canonical(wanted);
  const found = name === undefined ? undefined : names.find((other) => canonical(other) === name);
  const allowed = [standard, ...(fallback === undefined ? [] : [fallback]), ...Object.keys(models)];
  if (
    Object.keys(models).length > 0 &&
    (name === undefined || !allowed.some((each) => resolved(models, each) === name))
  ) {
    return refuse("model_not_allowed", `model '${asked}' is not in agents.defaults.models`, wanted);
  }
  return found === undefined ? refuse("model_unknown", `model '${asked}' not found`, wanted) : { model: found };
}

/** Like `resolveModel`, but also finds models that the source offers. Throws the source's errors. */
export async function findModel(
  question: Omit<ModelQuestion, "names">,
  { modelNames, isOffered }: ModelSource,
): Promise<ModelAnswer> {
  const answer = resolveModel({ ...question, names: await modelNames() });
  if (!("error" in answer) || answer.error.code !== "model_unknown") return answer;
  const { name } = answer.error;
  return canonical(name) !== undefined && (await isOffered?.(name)) ? { model: name } : answer;
}

const refuse = (code: ModelProblem["code"], message: string, name: string): ModelAnswer => ({
  error: { code, message, name },
});

const resolved = (models: AgentsConfig["defaults"]["models"], reference: string): string | undefined =>
  canonical(aliasOf(models, reference) ?? reference);

/** Aliases have no slash, so that none can shadow a model of a namespace. */
function aliasOf(models: AgentsConfig["defaults"]["models"], reference: string): string | undefined {
  if (reference.includes("/")) return undefined;
  const word = reference.toLowerCase();
  return Object.entries(models).find(([, { alias }]) => alias?.toLowerCase() === word)?.[0];
}

/** The canonical spelling of a model's name; undefined if it is not a name. */
export function canonical(reference: string): string | undefined {
  try {
    return displayName(parseReference(reference)).toLowerCase();
  } catch (error) {
    if (error instanceof AppError) return undefined;
    throw error;
  }
}
