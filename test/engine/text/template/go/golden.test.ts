/**
 * Go templates against Go itself: golden/go.json holds text/template's output for the templates, conversations and
 * expressions beside it (golden/make.go).
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { AppError } from "../../../../../src/base/errors.ts";
import { parseGoTemplate } from "../../../../../src/engine/text/template/go/go-template.ts";
import { goFrom } from "../../../../../src/engine/text/template/go/value.ts";
import { parseGoPrompt, renderGoChat, renderGoInsert } from "../../../../../src/engine/text/template/go-prompt.ts";
import type { PromptMessage, PromptTool } from "../../../../../src/engine/text/template/messages.ts";

interface Result {
  readonly text: string;
  readonly error?: string;
}

interface Conversation {
  readonly name: string;
  readonly messages: PromptMessage[];
  readonly tools?: PromptTool[];
  readonly think?: boolean;
  readonly prompt?: string;
  readonly suffix?: string;
}

const folder = join(import.meta.dir, "../golden");
const read = (name: string): string => readFileSync(join(folder, name), "utf8");
const golden: {
  chats: Record<string, Record<string, Result>>;
  expressions: Record<string, Result>;
} = JSON.parse(read("go.json"));
const conversations: Conversation[] = JSON.parse(read("conversations.json"));
const expressions: { values: unknown; templates: string[] } = JSON.parse(read("expressions.json"));
const now = new Date(2026, 10, 21, 12);

/** The text, or that it failed as it should. */
function attempt(run: () => string): string | AppError {
  try {
    return run();
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}

/** Line of `template:3:14: …`, and of Go's `template: :3:13: …`, which counts columns from 0 and in bytes. */
const lineOf = (message: string): string | undefined => /^template:(?: :)?(\d+):/.exec(message)?.[1];

/** The reason of a runtime error. Ignores types: Go names the slot's, we name the value's. */
const reasonOf = (message: string): string | undefined =>
  / executing .*>: (.*)$/s.exec(message)?.[1]?.replace(/ in type .*$/, " in type …");

/** Our words that differ from Go's. */
const REASONS: Readonly<Record<string, string | undefined>> = {
  "{{ index .List 3 }}": "error calling index: index out of range: 3",
  "{{ printf .N }}": "error calling printf: wrong type for value; expected string; got float64",
  "{{ eq .List .List }}": "error calling eq: non-comparable type []interface {}",
  "{{ $x = 1 }}": undefined, // we see it while parsing
};

function check(got: string | AppError, expected: Result, source = ""): void {
  if (expected.error === undefined) {
    expect(got instanceof AppError ? got.message : got).toBe(expected.text);
    return;
  }
  if (!(got instanceof AppError)) throw new Error(`expected an error (${expected.error}), got ${JSON.stringify(got)}`);
  expect(got.code).toBe("bad_request");
  expect(lineOf(got.message)).toBe(lineOf(expected.error));
  expect(reasonOf(got.message)).toBe(source in REASONS ? REASONS[source] : reasonOf(expected.error));
}

describe("a prompt template renders as Go renders it", () => {
  for (const [name, results] of Object.entries(golden.chats)) {
    test(name, () => {
      const prompt = parseGoPrompt(read(`go/${name}.gotmpl`));
      for (const { prompt: text = "", suffix = "", ...request } of conversations) {
        const render = suffix ? () => renderGoInsert(prompt, { prompt: text, suffix }, { ...request, now }) : undefined;
        check(attempt(render ?? (() => renderGoChat(prompt, { ...request, now }))), results[request.name]!);
      }
    });
  }
});

/** Syntax that Go supports and we refuse. */
const REFUSED = new Set(["{{ 1i }}"]);

describe("an expression evaluates as in Go", () => {
  for (const source of expressions.templates) {
    test(source, () => {
      const expected = golden.expressions[source]!;
      const values = goFrom(expressions.values);
      const got = attempt(() => parseGoTemplate(source).render(values, { now }));
      if (REFUSED.has(source)) expect(got).toBeInstanceOf(AppError);
      else check(got, expected, source);
    });
  }
});
