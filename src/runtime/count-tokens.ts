/**
 * How many tokens a conversation has once the model's template has rendered it: nothing is left out to fit the context.
 */
import { AppError } from "../base/errors.ts";
import { fullName } from "../store/name.ts";
import { capabilitiesOf, renderChat } from "../template/prompt.ts";
import { lease, refuseImages, templateOf, thinkOf, type RuntimeParts } from "./answer.ts";
import { withModelMessages } from "./chat.ts";
import type { ChatRequest } from "./runtime.ts";

/** Loads the model if need be. Throws what the chat itself would before it asks the model. */
export async function countTokens(parts: RuntimeParts, request: ChatRequest): Promise<number> {
  const model = await parts.load(request.model);
  for (const message of request.messages) refuseImages(message.images, request.model);
  const loaded = await lease(parts, model, request);
  try {
    const template = templateOf(loaded);
    const tools = request.toolChoice === "none" ? undefined : request.tools;
    if (tools && !capabilitiesOf(template).tools) {
      throw new AppError("bad_request", `${fullName(model.name)} does not support tools`);
    }
    const think = thinkOf(template, request.think);
    const prompt = renderChat(template, {
      messages: withModelMessages(model, request.messages),
      now: parts.now(),
      ...(tools ? { tools } : {}),
      ...(think === undefined ? {} : { think }),
    });
    return await loaded.lease.runner.countTokens(prompt);
  } finally {
    loaded.lease.release();
  }
}
