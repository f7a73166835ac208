/** Prompts on the embedded model's tokenizer: the ids are those of the rendered text, for every way of asking. */
import { resolve } from "node:path";
import { describe, expect, test } from "bun:test";
import { mapFile } from "../../src/files/map.ts";
import { openGgufFrom } from "../../src/gguf/read.ts";
import { promptOf } from "../../src/runner/prompt.ts";
import { makeTemplates } from "../../src/runner/templates.ts";
import type { Asked } from "../../src/runner/messages.ts";
import type { EngineInfo } from "../../src/engine/load.ts";
import { SAMPLING_DEFAULTS } from "../../src/sampling/options.ts";
import { choosePrompt, renderChat, renderGenerate } from "../../src/template/prompt.ts";
import { loadTokenizer } from "../../src/tokenizer/load.ts";

const path = resolve(import.meta.dir, "../../models/hearth/hearth.gguf");
const { metadata } = openGgufFrom(mapFile, path);
const tokenizer = loadTokenizer(metadata, path);
const text = (id: number | undefined): string =>
  id === undefined ? "" : tokenizer.detokenize([id], { special: true });
const source = metadata.get("tokenizer.chat_template") as string;
const chatTemplate = { source, bos: text(tokenizer.bos), eos: text(tokenizer.eos) };
const info = { ctxLen: 100 } as EngineInfo; // all that prompts ask of it
const templates = makeTemplates(chatTemplate);
templates.define(0, { go: undefined, prefersGo: undefined });
templates.define(1, { go: "{{ .System }}|{{ .Prompt }}|", prefersGo: true });
const parts = { model: { tokenizer, info, chatTemplate }, templates, held: new Map<number, string>() };
const limits = { options: { ...SAMPLING_DEFAULTS, num_predict: 20 }, shift: true };
const jinja = choosePrompt({ jinja: source, tokens: chatTemplate });
const now = new Date(0);
const messages = [
  { role: "system", content: "Be brief." },
  { role: "user", content: "One <|im_end|> two" },
];
const encode = (rendered: string): number[] =>
  Array.from(tokenizer.encode(rendered, { addSpecial: !rendered.startsWith(chatTemplate.bos), parseSpecial: true }));
const idsOf = (asked: Asked): number[] => Array.from(promptOf(parts, asked, limits).ids);
const chat = (more: object = {}): Asked => ({ kind: "chat", template: 0, nowMs: 0, messages, ...more });

describe("ids", () => {
  test("of a conversation are those of its rendering", () => {
    expect(idsOf(chat())).toEqual(encode(renderChat(jinja, { messages, now })));
  });

  test("of a question are those of its rendering, after the ids of an earlier answer", () => {
    const question = { kind: "question", template: 1, nowMs: 0, prompt: "a", system: "s", context: [5, 6] } as const;
    const go = choosePrompt({ go: "{{ .System }}|{{ .Prompt }}|" });
    const rendered = renderGenerate(go, { prompt: "a", system: "s", now });
    const plain = tokenizer.encode(rendered, { addSpecial: false, parseSpecial: true });
    expect(idsOf(question)).toEqual([5, 6, ...plain]);
    expect(idsOf({ ...question, context: [] })).toEqual(encode(rendered));
  });

  test("of a raw text are the text's", () => {
    expect(idsOf({ kind: "text", text: "a<|im_end|>b", context: [] })).toEqual(encode("a<|im_end|>b"));
    expect(() => idsOf({ kind: "text", text: "a", context: [2 ** 40] })).toThrow("expected ids of the vocabulary");
  });

  test("of a continued prompt are those of the whole text", () => {
    const { text: first } = promptOf(parts, chat(), limits);
    parts.held.set(7, first);
    expect(idsOf({ kind: "after", id: 7, text: "<think>hm" })).toEqual(encode(`${first}<think>hm`));
  });

  test("end with the beginning of the answer, and close thinking only where the prompt ends inside it", () => {
    const inside = { open: "<think>", close: "</think>\n\n" };
    const ended = (content: string): string => {
      const asked: Asked = { kind: "text", text: content, context: [], ending: { text: "{", inside } };
      return promptOf(parts, asked, limits).text;
    };
    expect([ended("a"), ended("a<think>\n")]).toEqual(["a{", "a<think>\n</think>\n\n{"]);
  });
});

describe("a conversation that does not fit", () => {
  const turns = Array.from({ length: 30 }, (_, i) => ({ role: "user", content: `question number ${i} of many` }));

  test("loses its oldest messages until there is room for the answer too", () => {
    const { ids, text: kept, wasCut } = promptOf(parts, chat({ messages: turns }), limits);
    expect([wasCut, ids.length <= 80]).toEqual([true, true]);
    const first = turns.findIndex(({ content }) => kept.includes(content));
    const longer = renderChat(jinja, { messages: turns.slice(first - 1), now });
    expect(encode(longer).length).toBeGreaterThan(80);
    expect(kept).toBe(renderChat(jinja, { messages: turns.slice(first), now }));
  });

  test("stays whole where it may not be cut, and where it is counted", () => {
    const whole = encode(renderChat(jinja, { messages: turns, now })).length;
    const uncut = promptOf(parts, chat({ messages: turns }), { ...limits, truncate: false });
    expect([uncut.ids.length, promptOf(parts, chat({ messages: turns })).ids.length]).toEqual([whole, whole]);
  });
});

test("a template that does not parse is an error of those who ask for it; one that was dropped can be asked for again", () => {
  expect(templates.define(2, { go: "{{ .Prompt", prefersGo: true })).toMatchObject({ code: "bad_request" });
  expect(() => idsOf(chat({ template: 2 }))).toThrow(/template/);
  templates.drop(2);
  expect(() => idsOf(chat({ template: 2 }))).toThrow("please try again");
});
