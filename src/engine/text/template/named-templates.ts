/**
 * Built-in templates that a model's configuration can name (RENDERER). Related templates share a file, with settings at
 * its beginning; families share parts.
 */
import cogito from "../../../../models/templates/cogito.jinja" with { type: "text" };
import cohere from "../../../../models/templates/cohere.jinja" with { type: "text" };
import deepseek31 from "../../../../models/templates/deepseek3.1.jinja" with { type: "text" };
import functionGemma from "../../../../models/templates/functiongemma.jinja" with { type: "text" };
import gemma4 from "../../../../models/templates/gemma4.jinja" with { type: "text" };
import glimmer from "../../../../models/templates/glimmer.jinja" with { type: "text" };
import glm47 from "../../../../models/templates/glm-4.7.jinja" with { type: "text" };
import glmOcr from "../../../../models/templates/glm-ocr.jinja" with { type: "text" };
import laguna from "../../../../models/templates/laguna.jinja" with { type: "text" };
import lfm2 from "../../../../models/templates/lfm2.jinja" with { type: "text" };
import nemotron3 from "../../../../models/templates/nemotron-3-nano.jinja" with { type: "text" };
import olmo3 from "../../../../models/templates/olmo3.jinja" with { type: "text" };
import asPairs from "../../../../models/templates/parts/calls-as-pairs.jinja" with { type: "text" };
import asTags from "../../../../models/templates/parts/calls-as-tags.jinja" with { type: "text" };
import poolside from "../../../../models/templates/poolside-v1.jinja" with { type: "text" };
import qwen35 from "../../../../models/templates/qwen3.5.jinja" with { type: "text" };
import qwen3Coder from "../../../../models/templates/qwen3-coder.jinja" with { type: "text" };
import qwen3Vl from "../../../../models/templates/qwen3-vl.jinja" with { type: "text" };
import type { Renderer } from "./named.ts";

/** A template with some of its settings enabled. */
const set = (source: string, ...names: readonly string[]): string =>
  names.map((name) => `{%- set ${name} = true %}\n`).join("") + source;

const TEMPLATES: Readonly<Record<Renderer, string>> = {
  "qwen3-coder": asTags + qwen3Coder,
  "qwen3-vl-instruct": qwen3Vl,
  "qwen3-vl-thinking": set(qwen3Vl, "thinks_by_default"),
  "qwen3.5": asTags + qwen35,
  "qwen3.8": set(asTags + qwen35, "keeps_thoughts", "keeps_tags", "says_effort", "json_scalars"),
  ornith: set(asTags + qwen35, "keeps_thoughts"),
  cogito,
  "deepseek3.1": deepseek31,
  olmo3,
  "olmo3.1": set(olmo3, "says_name"),
  "olmo3-think": set(olmo3, "always_thinks", "says_name"),
  "olmo3-32b-think": set(olmo3, "always_thinks"),
  "nemotron-3-nano": asTags + nemotron3,
  "nemotron-3.5-nano": set(asTags + nemotron3, "is_35"),
  gemma4,
  "gemma4-small": gemma4,
  "gemma4-large": set(gemma4, "fills_thoughts"),
  functiongemma: functionGemma,
  "glm-4.7": asPairs + glm47,
  "glm-ocr": asPairs + glmOcr,
  lfm2,
  "lfm2-thinking": lfm2,
  laguna: asPairs + laguna,
  "poolside-v1": asPairs + poolside,
  cohere,
  glimmer,
};

const isRenderer = (name: string): name is Renderer => Object.hasOwn(TEMPLATES, name);

/** Jinja source; undefined if the name is unknown. */
export const namedTemplate = (renderer: string | undefined): string | undefined =>
  renderer !== undefined && isRenderer(renderer) ? TEMPLATES[renderer] : undefined;
