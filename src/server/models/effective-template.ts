/** The template in force: the Go template of a model's TEMPLATE layer, or the Jinja template of its GGUF file. */
import { AppError } from "../../base/index.ts";
import type { Metadata } from "../../engine/formats/index.ts";
import { hasOwnTemplate, type ModelEntry } from "../../library/portable.ts";
import { type Capabilities, capabilitiesWith, choosePrompt } from "../../engine/text/index.ts";
import { rendererOf } from "../../engine/index.ts";

export interface EffectiveTemplate {
  readonly text: string;
  /** True if the Jinja template of the file is in force. */
  readonly native: boolean;
  readonly capabilities: Capabilities;
  /** The reason why the template is unusable. */
  readonly problem?: string;
}

const NO_CAPABILITIES: Capabilities = { tools: false, thinking: false, insert: false };

/** A template that does not parse is still shown, without capabilities. */
export function effectiveTemplate(entry: ModelEntry, metadata: Metadata): EffectiveTemplate {
  const stored = metadata.get("tokenizer.chat_template");
  const jinja = typeof stored === "string" ? stored : undefined;
  const go = entry.template;
  try {
    const { renderer: named, parser, model_type: size } = entry.config;
    const renderer = rendererOf(named, { name: entry.displayName, size });
    const prompt = choosePrompt({ jinja, go, prefersGo: hasOwnTemplate(entry), renderer });
    const capabilities = capabilitiesWith(prompt, parser);
    return { text: prompt.source, native: prompt.kind === "jinja", capabilities };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { text: go ?? jinja ?? "", native: go === undefined, capabilities: NO_CAPABILITIES, problem: error.message };
  }
}
