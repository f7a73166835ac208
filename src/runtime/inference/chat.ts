/** Chat: turns a conversation, the model's own messages and the tools into requests to a runner. */
import { AppError, isObject } from "../../base/index.ts";
import {
  type PromptInput,
  type InputMessage,
  forgetsThoughts,
  withoutNulls,
  withoutOldThoughts,
} from "../../engine/index.ts";
import { fullName, type ModelRef } from "../../library/portable.ts";
import { requiredTools } from "./forced-call.ts";
import { infer } from "./infer.ts";
import { onRunner, refuseEmbedder, settingsOf, templateOf, thinkOf, type Loaded, type RuntimeParts } from "./lease.ts";
import { withoutUnreadable } from "./media.ts";
import type { OutputFormat } from "./respond.ts";
import type { ChatRequest, InferenceEvent, Tool } from "../requests/runtime.ts";

export function runChat(parts: RuntimeParts, request: ChatRequest): AsyncGenerator<InferenceEvent, void, void> {
  return infer(parts, {
    request,
    name: "chat",
    isEmpty: request.messages.length === 0,
    begin: async (loaded) => {
      const { asked, shape } = await conversationOf(parts, loaded, request);
      const { respond } = await import("./respond.ts");
      return respond(loaded, { asked, settings: settingsOf(loaded, request), wantsContext: false }, shape);
    },
  });
}

/** Loads the model if needed. Throws the errors that the chat itself would throw before it asks the model. */
export async function countTokens(parts: RuntimeParts, request: ChatRequest): Promise<number> {
  return onRunner(parts, request, async (loaded) => {
    refuseEmbedder(loaded, { model: request.model, task: "chat" });
    const { asked } = await conversationOf(parts, loaded, request);
    return loaded.lease.runner.countTokens(asked);
  });
}

/** The prompt of a chat. Throws as `countTokens` does. */
export async function renderChat(parts: RuntimeParts, request: ChatRequest): Promise<string> {
  return onRunner(parts, request, async (loaded) => {
    refuseEmbedder(loaded, { model: request.model, task: "chat" });
    const { asked } = await conversationOf(parts, loaded, request);
    return loaded.lease.runner.render(asked, settingsOf(loaded, request));
  });
}

/** Throws `bad_request` for images, recordings, tools and tool choices that the model does not support. */
async function conversationOf(
  parts: RuntimeParts,
  loaded: Loaded,
  request: ChatRequest,
): Promise<{ readonly asked: PromptInput; readonly shape: OutputFormat }> {
  const { model, lease } = loaded;
  const messages = withoutUnreadable(request.messages, { model: request.model, info: lease.runner.info });
  const offered = (request.tools ?? []).map(withoutNullKeywords);
  const required = requiredTools({ tools: offered, toolChoice: request.toolChoice });
  const { number, facts } = await lease.runner.template(templateOf(model));
  const tools = request.toolChoice === "none" ? [] : offered;
  if (tools.length > 0 && !facts.capabilities.tools) {
    throw new AppError("bad_request", `${fullName(model.name)} does not support tools`);
  }
  const think = thinkOf(facts, request.think);
  const asked: PromptInput = {
    kind: "chat",
    template: number,
    nowMs: parts.now().getTime(),
    messages: withModelMessages(model, { messages, isOutside: request.isOutside }),
    ...(tools.length > 0 ? { tools } : {}),
    ...(think === undefined ? {} : { think }),
    ...(request.templateVariables ? { variables: request.templateVariables } : {}),
  };
  return {
    asked,
    shape: {
      facts,
      think,
      tools,
      required,
      isParallel: request.parallelToolCalls,
      callGrammars: await parts.callGrammars(),
    },
  };
}

/** Some templates loop over `required` or `properties` without a check for null. */
function withoutNullKeywords(tool: Tool): Tool {
  const { parameters } = tool.function;
  return isObject(parameters)
    ? { ...tool, function: { ...tool.function, parameters: withoutNulls(parameters) } }
    : tool;
}

type Said = Pick<ChatRequest, "messages"> & { readonly isOutside: boolean | undefined };

/** Puts the model's own system text first, unless the caller brings one, and then its example messages. */
function withModelMessages(model: ModelRef, { messages: given, isOutside }: Said): readonly InputMessage[] {
  const messages: readonly InputMessage[] = isOutside ? given.map((each) => ({ ...each, isOutside })) : given;
  const system = messages[0]?.role === "system" || !model.system ? [] : [{ role: "system", content: model.system }];
  const all = [...system, ...model.messages, ...messages];
  const about = { family: model.config.model_family, name: model.name.model };
  return forgetsThoughts(about) ? withoutOldThoughts(all) : all;
}
