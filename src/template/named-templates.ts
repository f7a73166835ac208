/** The templates of ours that a model's configuration can name (RENDERER), as far as they are here. */
import qwen35 from "../../models/templates/qwen3.5.jinja" with { type: "text" };
import qwen3Coder from "../../models/templates/qwen3-coder.jinja" with { type: "text" };
import qwen3VlInstruct from "../../models/templates/qwen3-vl-instruct.jinja" with { type: "text" };
import qwen3VlThinking from "../../models/templates/qwen3-vl-thinking.jinja" with { type: "text" };

const TEMPLATES: Readonly<Record<string, string>> = {
  "qwen3-coder": qwen3Coder,
  "qwen3.5": qwen35,
  "qwen3-vl-instruct": qwen3VlInstruct,
  "qwen3-vl-thinking": qwen3VlThinking,
};

/** Jinja source; undefined where there is none of that name. */
export const namedTemplate = (renderer: string | undefined): string | undefined =>
  renderer !== undefined && Object.hasOwn(TEMPLATES, renderer) ? TEMPLATES[renderer] : undefined;
