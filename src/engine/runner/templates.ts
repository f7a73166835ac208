/**
 * Templates of a runner, which requests select by number: model names that share weights may have different templates.
 */
import { AppError, messageOf } from "../../base/index.ts";
import type { LoadedEngine } from "../batching/load.ts";
import { templateFacts } from "../text/template/facts.ts";
import { choosePrompt, type PromptTemplate } from "../text/template/prompt.ts";
import type { TemplateChoice, TemplateReply } from "./messages.ts";

export interface Templates {
  /** Parses a template and registers it under a number. The reply contains its error, if any. */
  define(number: number, choice: TemplateChoice): TemplateReply;
  drop(number: number): void;
  /** Throws the template's error. */
  get(number: number): PromptTemplate;
}

export function makeTemplates({ source: jinja, ...tokens }: LoadedEngine["chatTemplate"]): Templates {
  const kept = new Map<number, PromptTemplate | AppError>();
  return {
    define(number, { go, prefersGo, renderer, parser }) {
      try {
        const template = choosePrompt({ go, jinja, tokens, prefersGo, renderer });
        kept.set(number, template);
        return { facts: templateFacts(template, parser) };
      } catch (error) {
        if (!(error instanceof AppError)) throw error;
        kept.set(number, error);
        return { code: error.code, message: messageOf(error) };
      }
    },
    drop: (number) => void kept.delete(number),
    get(number) {
      const found = kept.get(number);
      if (found === undefined) throw new AppError("busy", "too many templates at once, please try again");
      if (found instanceof AppError) throw found;
      return found;
    },
  };
}
