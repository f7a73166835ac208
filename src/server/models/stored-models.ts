/** The models of the store, for agents. */
import type { ModelSource } from "../../gateway/index.ts";
import { AppError, type Logger, messageOf } from "../../base/index.ts";
import { parseReference, type Store } from "../../library/portable.ts";
import { makeInspect } from "./inspect.ts";

/** Time limit for the source of models to answer. */
const OFFER_MS = 5000;
/** Lifetime of its answer. */
const KNOWN_MS = 10_000;
const KNOWN_MAX = 100;

export function storedModels(store: Store, log: Logger): ModelSource {
  const inspect = makeInspect({ store, log });
  return {
    modelNames: async () => (await store.list()).map(({ displayName }) => displayName),
    async canChat(name) {
      const model = await store.find(name);
      const facts = model && (await inspect(model));
      return facts?.capabilities.includes("completion") ?? true; // an unreadable model is reported elsewhere
    },
    ...(store.isOffered && { isOffered: rememberOffers(store) }),
  };
}

/** Caches the source's answers, because probes ask repeatedly. */
function rememberOffers(store: Store): (name: string) => Promise<boolean> {
  const known = new Map<string, { readonly isThere: boolean; readonly atMs: number }>();
  return async (name) => {
    const found = known.get(name);
    if (found && performance.now() - found.atMs < KNOWN_MS) return found.isThere;
    const isThere = await isOffered(store, name);
    if (known.size >= KNOWN_MAX) known.clear();
    known.set(name, { isThere, atMs: performance.now() });
    return isThere;
  };
}

async function isOffered(store: Store, name: string): Promise<boolean> {
  try {
    return (await store.isOffered?.(parseReference(name), AbortSignal.timeout(OFFER_MS))) ?? false;
  } catch (error) {
    const message = `the source of models does not say whether it has '${name}': ${messageOf(error)}`;
    throw new AppError("registry", message, { cause: error, isUntried: true });
  }
}
