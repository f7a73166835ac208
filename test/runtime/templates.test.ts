import { expect, test } from "bun:test";
import { templateOf, type Loaded } from "../../src/runtime/answer.ts";

/** As much of a loaded model as its template needs. */
function loaded(chatTemplate: string, go?: string): Loaded {
  const runner = { info: { chatTemplate, bosText: "", eosText: "" } };
  return { lease: { runner }, model: { template: go, config: {} }, templates: new WeakMap() } as unknown as Loaded;
}

test("a loaded model's template is parsed once, apart for every name that has one of its own", () => {
  const one = loaded("{{ messages[0].content }}");
  expect(templateOf(one)).toBe(templateOf(one));
  const other = { ...one, model: { ...one.model, template: "[{{ .Prompt }}]" } } as Loaded;
  expect(templateOf(other)).not.toBe(templateOf(one));
  expect([templateOf(one).kind, templateOf(other).kind]).toEqual(["jinja", "go"]);
  expect(templateOf(other)).toBe(templateOf(other));
});

test("another runner of the same weights has templates of its own", () => {
  const one = loaded("{{ messages[0].content }}");
  const next = { ...loaded("{{ messages[0].role }}"), templates: one.templates };
  expect(templateOf(one).source).not.toBe(templateOf(next).source);
});

test("names that share a template and a runner differ in whether it was given to win", () => {
  const one = loaded("{{ tools }}{{ messages[0].content }}", "[{{ .Prompt }}]");
  const own = { ...one, model: { ...one.model, config: { hearth_template: "own" } } } as Loaded;
  expect([templateOf(one).kind, templateOf(own).kind, templateOf(one).kind]).toEqual(["jinja", "go", "jinja"]);
});
