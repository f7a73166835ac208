/**
 * Jinja templates against Python's jinja2, set up like transformers does: golden/jinja.json holds its output for the
 * templates, conversations and expressions beside it (golden/make.py).
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { AppError } from "../../../../../src/base/errors.ts";
import { parseJinja } from "../../../../../src/engine/text/template/jinja.ts";
import type { PromptMessage } from "../../../../../src/engine/text/template/messages.ts";

interface Result {
  readonly text: string;
  readonly error?: string;
}

interface Conversation {
  readonly name: string;
  readonly messages: PromptMessage[];
  readonly tools?: unknown[];
  readonly think?: boolean;
}

const folder = join(import.meta.dir, "../golden");
const read = (name: string): string => readFileSync(join(folder, name), "utf8");
const golden: {
  chats: Record<string, Record<string, Result>>;
  expressions: Record<string, Result>;
} = JSON.parse(read("jinja.json"));
const conversations: Conversation[] = JSON.parse(read("conversations.json"));
const expressions: { values: Record<string, unknown>; templates: string[] } = JSON.parse(
  read("jinja-expressions.json"),
);
const now = new Date(2026, 10, 21, 9, 5, 7);

function attempt(source: string, values: Record<string, unknown>): string | AppError {
  try {
    return parseJinja(source).render(values, now);
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}

/** Errors with the same words as Python's; syntax errors differ. */
const SAME_WORDS =
  /^(?:UndefinedError|TypeError|ValueError|ZeroDivisionError|TemplateError|TemplateRuntimeError): (.*)$/s;

function check(got: string | AppError, expected: Result, reason = SAME_WORDS.exec(expected.error ?? "")?.[1]): void {
  if (expected.error === undefined) {
    expect(got instanceof AppError ? got.message : got).toBe(expected.text);
    return;
  }
  if (!(got instanceof AppError)) throw new Error(`expected an error (${expected.error}), got ${JSON.stringify(got)}`);
  expect(got.code).toBe("bad_request");
  if (reason !== undefined) expect(got.message.replace(/^chat template: /, "")).toBe(reason);
}

describe("a chat template renders as in Python", () => {
  for (const [name, results] of Object.entries(golden.chats)) {
    test(name, () => {
      const source = read(`jinja/${name}.jinja`);
      for (const { messages, tools, think, name: conversation } of conversations) {
        const expected = results[conversation];
        if (!expected) continue;
        const values = {
          messages,
          tools: tools ?? null,
          enable_thinking: think,
          bos_token: "<s>",
          eos_token: "</s>",
          add_generation_prompt: messages.at(-1)?.role !== "assistant",
        };
        check(attempt(source, values), expected);
      }
    });
  }
});

/** Syntax that Python supports and our parser does not. */
const REFUSED = new Set(["{{ (1,) }}", "{{ 1e-5 }}", "{% filter upper | trim %} a {% endfilter %}"]);

describe("an expression evaluates as in Python", () => {
  for (const source of expressions.templates) {
    test(source, () => {
      const got = attempt(source, expressions.values);
      if (REFUSED.has(source)) expect(got).toBeInstanceOf(AppError);
      else check(got, golden.expressions[source]!);
    });
  }
});
