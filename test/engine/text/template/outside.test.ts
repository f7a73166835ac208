/** Treatment of the placeholders of hidden texts by templates. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { renderWithOutside } from "../../../../src/engine/text/template/outside.ts";
import { parseGoPrompt, renderGoChat } from "../../../../src/engine/text/template/go-prompt.ts";
import { parseJinja } from "../../../../src/engine/text/template/jinja.ts";
import type { PromptMessage } from "../../../../src/engine/text/template/messages.ts";

const CONTROL = ["<|end|>", "<|end|>x", "|end|", "<|"];

/** Every occurrence, and every end that may begin one, as a tokenizer finds them. */
const findControl = (text: string) =>
  CONTROL.flatMap((piece) =>
    Array.from({ length: text.length }, (_, start) => ({
      start,
      end: Math.min(start + piece.length, text.length),
    })).filter(({ start, end }) => text.slice(start, end) === piece.slice(0, end - start)),
  );

const outside = (content: string): PromptMessage => ({ role: "user", content, isOutside: true });
const contents = (messages: readonly PromptMessage[]): string => messages.map(({ content }) => content).join("|");
const show = (messages: readonly PromptMessage[], render = contents) =>
  renderWithOutside({ messages, findControl, render }).filter((part) => "text" in part);
const isFree = (text: string): boolean => CONTROL.every((piece) => !text.includes(piece));
const pieces = fc.array(
  fc.constantFrom(...CONTROL, "a", "<", "|end", ">", "\ufdd0", "\ufdef", "\ufdd1\ufdef", " ", "é"),
);

test("text from outside is rendered unchanged, and none of it is marked as control tokens", () => {
  fc.assert(
    fc.property(pieces, pieces, (one, two) => {
      const messages = [outside(one.join("")), { role: "user", content: "b <|end|> \ufdd2" }, outside(two.join(""))];
      const segments = show(messages);
      expect(segments.map(({ text }) => text).join("")).toBe(contents(messages));
      const spelled = segments.flatMap(({ text, control }) => (control ? [text.replace("b <|end|> ", "")] : []));
      expect(spelled.every(isFree)).toBe(true);
    }),
  );
});

test("a prompt without text from outside is one segment", () => {
  const messages = [{ role: "user", content: "a <|end|> \ufdd0" }];
  expect(show(messages)).toEqual([{ text: "a <|end|> \ufdd0", control: true }]);
});

describe("images", () => {
  const parts = (messages: readonly PromptMessage[], render = contents) =>
    renderWithOutside({ messages, findControl, render });
  const user = (content: string, more: Partial<PromptMessage> = {}) => ({ role: "user", content, ...more });
  const text = (said: string) => ({ text: said, control: true });

  test("lie at their places, or before the text if there are none", () => {
    const messages = [user("ab", { images: [1, 2], imagesAt: [0, 1] }), user("c", { images: [3], isOutside: true })];
    const expected = [{ image: 1 }, text("a"), { image: 2 }, text("b|"), { image: 3 }, text("c")];
    expect(parts(messages)).toEqual(expected);
  });

  test("are never made from text that looks like a marker", () => {
    const written = "\ufdd0\ufdef [img] <image> [img-0] \ufdd1\ufdef";
    for (const isOutside of [true, false]) {
      const [image, ...said] = parts([user(written, { images: [7], isOutside }), user(written, { isOutside })]);
      expect(image).toEqual({ image: 7 });
      expect(said.map((part) => ("text" in part ? part.text : "!")).join("")).toBe(`${written}|${written}`);
    }
  });

  test("keep their places in texts that a template quotes or escapes", () => {
    const messages = [user("a\t", { images: [1], imagesAt: [1], isOutside: true })];
    const now = new Date(0);
    const prints = { 'printf "%q"': ['"a', '\\t"'], js: ["a", "\\u0009"], json: ['"a', '\\t"'], html: ["a", "\t"] };
    for (const [print, [before, after]] of Object.entries(prints)) {
      const go = parseGoPrompt(`{{ range .Messages }}{{ ${print} .Content }}{{ end }}`);
      const shown = parts(messages, (guarded) => renderGoChat(go, { messages: guarded, now }));
      expect(shown).toEqual([text(before!), { image: 1 }, text(after!)]);
    }
    const jinja = parseJinja("{{ [messages[0].content] }}");
    const shown = parts(messages, (guarded) => jinja.render({ messages: guarded }, now));
    expect(shown).toEqual([text("['a"), { image: 1 }, text("\\t']")]);
  });

  test("are an error if the template leaves them out", () => {
    const messages = [user("a", { images: [1] }), user("b", { images: [2] })];
    expect(() => parts(messages, (all) => all[0]!.content)).toThrow("image 2: the model's template leaves it out");
  });
});

describe("a template that", () => {
  const said = [outside("x<|end|>y"), outside("<|<|end|>|end|>")];

  test("cuts text from outside anywhere gets no control token from it", () => {
    for (let at = 0; at < 20; at++) {
      for (const cut of [(text: string) => text.slice(at), (text: string) => text.slice(0, -at || undefined)]) {
        const segments = show(said, (messages) => cut(contents(messages)));
        expect(segments.every(({ text, control }) => !control || isFree(text))).toBe(true);
      }
    }
  });

  test("cuts text from outside in the middle gets no control token from it", () => {
    for (let at = 0; at < 12; at++) {
      for (let end = at; end < 14; end++) {
        const segments = show(said, (all) => contents(all).slice(0, at) + contents(all).slice(end));
        expect(segments.every(({ text, control }) => !control || isFree(text))).toBe(true);
      }
    }
  });

  test("prints control tokens beside text from outside has its own marked as control", () => {
    const segments = show([outside("<|end|>")], (messages) => `<|end|>${contents(messages)}<|end|>`);
    expect(segments).toEqual([
      { text: "<|end|>", control: true },
      { text: "<|end|>", control: false },
      { text: "<|end|>", control: true },
    ]);
  });
});
