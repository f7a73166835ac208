/** The models of the store as agents ask for them. */
import type { ModelSource } from "../agent/models.ts";
import { AppError, messageOf } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import { parseReference } from "../store/name.ts";
import type { Store } from "../store/store.ts";
import { makeInspect } from "./inspect.ts";

/** How long the source of models may take to say whether it has one. */
const OFFER_MS = 5000;

export function storedModels(store: Store, log: Logger): ModelSource {
  const inspect = makeInspect({ store, log });
  return {
    modelNames: async () => (await store.list()).map(({ displayName }) => displayName),
    async canChat(name) {
      const model = await store.find(name);
      const facts = model && (await inspect(model));
      return facts?.capabilities.includes("completion") ?? true; // what cannot be read is told elsewhere
    },
    ...(store.isOffered && { isOffered: (name: string) => isOffered(store, name) }),
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
