/**
 * How many tokens a conversation has once the model's template has rendered it: nothing is left out to fit the context.
 */
import { lease, modelOf, refuseEmbedder, refuseImages, type RuntimeParts } from "./answer.ts";
import { conversationOf } from "./conversation.ts";
import { requiredTools } from "./forced-call.ts";
import type { ChatRequest } from "./runtime.ts";

/** Loads the model if need be. Throws what the chat itself would before it asks the model. */
export async function countTokens(parts: RuntimeParts, request: ChatRequest): Promise<number> {
  const model = await modelOf(parts, request);
  for (const message of request.messages) refuseImages(message.images, request.model);
  requiredTools(request);
  const loaded = await lease(parts, model, request);
  try {
    refuseEmbedder(loaded, { model: request.model, task: "chat" });
    const { messages, render } = conversationOf(parts, loaded, request);
    return await loaded.lease.runner.countTokens(render(messages));
  } finally {
    loaded.lease.release();
  }
}
