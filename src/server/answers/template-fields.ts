/** `chat_template_kwargs`: variables for a model's chat template, as vLLM and llama-server take them. */
import { AppError, isObject, unexpected } from "../../base/index.ts";
import type { ChatRequest, Think } from "../../runtime/portable.ts";

/** Variables that the request itself gives. */
const OWN = new Set([
  "messages",
  "tools",
  "add_generation_prompt",
  "bos_token",
  "eos_token",
  "chat_template",
  "tokenize",
]);
const VARIABLES_MAX = 64;

/** The variables of a request. Throws `bad_request`. */
export function readTemplateFields(body: {
  readonly chat_template_kwargs?: unknown;
}): Pick<ChatRequest, "templateVariables"> {
  const given = body.chat_template_kwargs;
  if (given === undefined) return {};
  if (!isObject(given)) throw unexpected("chat_template_kwargs", "an object", given);
  const names = Object.keys(given);
  if (names.length > VARIABLES_MAX) {
    const wanted = `expected at most ${VARIABLES_MAX} variables, got ${names.length}`;
    throw new AppError("bad_request", `chat_template_kwargs: ${wanted}`);
  }
  const own = names.find((name) => OWN.has(name));
  if (own !== undefined)
    throw new AppError(
      "bad_request",
      `chat_template_kwargs.${own}: expected another name: the request itself sets this one`,
    );
  const { enable_thinking: enabled } = given;
  if (enabled !== undefined && typeof enabled !== "boolean") {
    throw unexpected("chat_template_kwargs.enable_thinking", "true or false", enabled);
  }
  return names.length > 0 ? { templateVariables: given } : {};
}

/** Thinking as set by the variables; undefined: they do not set it. */
export function thinkInTemplate({ templateVariables = {} }: Pick<ChatRequest, "templateVariables">): Think | undefined {
  const said = templateVariables["enable_thinking"] ?? templateVariables["thinking"];
  return typeof said === "boolean" ? said : undefined;
}
