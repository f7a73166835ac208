/**
 * Our templates against the models' own: the same text for thirteen conversations. If ours deliberately differs, or the
 * local file is older than the published one, the reference is adapted.
 */
import { describe, expect } from "bun:test";
import { parseJinja } from "../../../../src/engine/text/template/jinja.ts";
import { namedTemplate } from "../../../../src/engine/text/template/named-templates.ts";
import type { Renderer } from "../../../../src/engine/text/template/named.ts";
import { CONVERSATIONS } from "./conversations.ts";
import { referenceTemplate, withTemplate } from "./reference.ts";

interface Reference {
  readonly renderer: Renderer;
  readonly file: string;
  /** Updates the file to the published version; absent: it is current. */
  readonly edit?: (source: string) => string;
  /** The reference's input; absent: the same. Undefined: nothing to compare. */
  readonly given?: (context: Context) => Context | undefined;
}

type Context = Record<string, unknown> & { readonly messages: readonly Record<string, unknown>[] };

const NOW = new Date(0);

const withoutTools = (context: Context): Context | undefined => (context["tools"] ? undefined : context);

/** The special instructions of one model, Cohere's, are a system text of it here, in the same place. */
function withPlatform(context: Context): Context | undefined {
  const [first, ...messages] = context.messages;
  if (first?.["role"] !== "system") return undefined;
  const reasoning = context["enable_thinking"] ?? true;
  return { ...context, messages, platform_instruction_override: first["content"], reasoning };
}

const REFERENCES: readonly Reference[] = [
  { renderer: "qwen3.5", file: "Qwen3.5-4B.jinja" },
  { renderer: "nemotron-3-nano", file: "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16.jinja" },
  {
    renderer: "nemotron-3.5-nano",
    file: "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16.jinja",
    edit: (source) => source.replace('"\\n</think>\\n"', '"</think>"').replace(" ~ c | trim %}", " ~ c %}"),
  },
  { renderer: "glm-4.7", file: "GLM-4.7-Flash.jinja" },
  { renderer: "laguna", file: "poolside-Laguna-XS.2.jinja" },
  { renderer: "poolside-v1", file: "poolside-Laguna-S-2.1.jinja" },
  { renderer: "lfm2", file: "LFM2.5-8B-A1B.jinja" },
  { renderer: "cohere", file: "Cohere2MoE.jinja", given: withPlatform },
  {
    renderer: "glimmer",
    file: "muse-glimmer.jinja",
    given: (context) => (context["enable_thinking"] === false ? { ...context, reasoning_strength: "none" } : context),
  },
  {
    renderer: "deepseek3.1", // published without a place for tools
    file: "deepseek-ai-DeepSeek-V3.1.jinja",
    edit: (source) => source.replaceAll("<think></think>", "</think>"),
    given: withoutTools,
  },
  {
    renderer: "gemma4-large", // older than the last changes, which concern nulls, results and thinking
    file: "google-gemma-4-31B-it.jinja",
    given: ({ messages, ...context }) =>
      messages.some(({ role }) => role === "tool") ? undefined : { ...context, messages },
  },
];

describe("the model's own template", () => {
  for (const { renderer, file, edit, given } of REFERENCES) {
    withTemplate(file)(`${renderer} says what ${file} says`, () => {
      const reference = parseJinja(edit ? edit(referenceTemplate(file)) : referenceTemplate(file));
      const ours = parseJinja(namedTemplate(renderer)!);
      let compared = 0;
      for (const { name, context } of CONVERSATIONS) {
        const theirs = given ? given(context as Context) : context; // each has messages
        if (theirs === undefined) continue;
        expect(`${name}: ${ours.render(context, NOW)}`).toBe(`${name}: ${reference.render(theirs, NOW)}`);
        compared++;
      }
      expect(compared).toBeGreaterThan(5);
    });
  }
});
