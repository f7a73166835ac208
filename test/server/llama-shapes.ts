/**
 * Answers of llama-server (v0.5.0) with the embedded model, which bench/record-llama-server.ts records, and the
 * comparison of their shapes with ours. Long vectors and texts are cut.
 */
import { isObject } from "../../src/base/index.ts";
import recorded from "./llama-server-answers.json";

export { recorded };

/** Fields that are not compared, because Hearth has no such thing. */
const NOT_GIVEN: ReadonlySet<string> = new Set(
  [
    "adaptive_target adaptive_decay grammar_lazy grammar_triggers preserved_tokens chat_format reasoning_format",
    "reasoning_in_content generation_prompt speculative.types backend_sampling media_marker ui ui_settings",
    "chat_template_caps bos_token eos_token cors_proxy_enabled",
  ]
    .join(" ")
    .split(" "),
);

/** Fields of llama-server's answer that ours lacks or that have another type, as paths. */
export function missing(theirs: unknown, ours: unknown, path = "$"): string[] {
  if (Array.isArray(theirs)) {
    if (!Array.isArray(ours)) return [`${path}: expected a list`];
    return theirs.length > 0 && ours.length > 0 ? missing(theirs[0], ours[0], `${path}[0]`) : [];
  }
  if (!isObject(theirs)) return typeof theirs === typeof ours ? [] : [`${path}: expected a ${typeof theirs}`];
  if (!isObject(ours)) return [`${path}: expected an object`];
  return Object.entries(theirs)
    .filter(([key]) => !NOT_GIVEN.has(key))
    .flatMap(([key, value]) =>
      Object.hasOwn(ours, key) ? missing(value, ours[key], `${path}.${key}`) : `${path}.${key}`,
    );
}
