/** How a conversation becomes a prompt: by a model's template, with its own messages, the tools, and thinking. */
import { AppError } from "../base/errors.ts";
import { fullName } from "../store/name.ts";
import type { ModelRef } from "../store/store.ts";
import { forgetsThoughts, withoutOldThoughts } from "../template/old-thoughts.ts";
import { capabilitiesOf, renderChat, type PromptTemplate } from "../template/prompt.ts";
import { templateOf, thinkOf, type Loaded, type RuntimeParts } from "./answer.ts";
import type { ChatRequest, Message, Think, Tool } from "./runtime.ts";

export interface Conversation {
  readonly template: PromptTemplate;
  /** Empty where the model may call none. */
  readonly tools: readonly Tool[];
  readonly think: Think | undefined;
  /** The model's own and the caller's. */
  readonly messages: readonly Message[];
  /** Throws `bad_request` where the template refuses these messages. */
  render(messages: readonly Message[]): string;
}

/** Throws `bad_request` where the model knows no tools. */
export function conversationOf(parts: RuntimeParts, loaded: Loaded, request: ChatRequest): Conversation {
  const template = templateOf(loaded);
  const tools = request.toolChoice === "none" ? [] : (request.tools ?? []);
  if (tools.length > 0 && !capabilitiesOf(template).tools) {
    throw new AppError("bad_request", `${fullName(loaded.model.name)} does not support tools`);
  }
  const think = thinkOf(template, request.think);
  const given = { ...(tools.length > 0 ? { tools } : {}), ...(think === undefined ? {} : { think }) };
  return {
    template,
    tools,
    think,
    messages: withModelMessages(loaded.model, request.messages),
    render: (messages) => renderChat(template, { messages, now: parts.now(), ...given }),
  };
}

/** The model's own system text, where the caller brings none, and its example messages come first. */
function withModelMessages(model: ModelRef, messages: readonly Message[]): readonly Message[] {
  const system = messages[0]?.role === "system" || !model.system ? [] : [{ role: "system", content: model.system }];
  const all = [...system, ...model.messages, ...messages];
  const about = { family: model.config.model_family, name: model.name.model };
  return forgetsThoughts(about) ? withoutOldThoughts(all) : all;
}
