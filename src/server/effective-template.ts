/** Which of a model's templates is in force: the Go one of its TEMPLATE layer, or the Jinja one of its GGUF file. */
import type { Metadata } from "../gguf/gguf.ts";
import type { ModelEntry } from "../store/store.ts";

export interface EffectiveTemplate {
  readonly text: string;
  /** The Jinja template of the file is in force. */
  readonly native: boolean;
  readonly capabilities: { readonly tools: boolean; readonly thinking: boolean; readonly insert: boolean };
}

export function effectiveTemplate(entry: ModelEntry, metadata: Metadata): EffectiveTemplate {
  const jinja = metadata.get("tokenizer.chat_template");
  const text = entry.template ?? (typeof jinja === "string" ? jinja : "{{ .Prompt }}");
  const native = entry.template === undefined && typeof jinja === "string";
  return {
    text,
    native,
    capabilities: { tools: /tools|Tools/.test(text), thinking: /<think>/.test(text), insert: false },
  };
}
