/** Prompts on the embedded model's tokenizer: the ids equal the rendered text's, for every kind of request. */
import { resolve } from "node:path";
import { describe, expect, test } from "bun:test";
import { mapFile } from "../../../src/engine/formats/files/map.ts";
import { openGgufFrom } from "../../../src/engine/formats/gguf/read.ts";
import { endOf, promptOf, textOf, type Prompt } from "../../../src/engine/runner/prompt.ts";
import { makeTemplates } from "../../../src/engine/runner/templates.ts";
import type { PromptInput } from "../../../src/engine/runner/messages.ts";
import type { EngineInfo } from "../../../src/engine/batching/engine-info.ts";
import { SAMPLING_DEFAULTS } from "../../../src/engine/text/sampling/options.ts";
import { choosePrompt, renderChat, renderGenerate } from "../../../src/engine/text/template/prompt.ts";
import { loadTokenizer } from "../../../src/engine/text/tokenizer/load.ts";

const path = resolve(import.meta.dir, "../../../models/hearth/hearth.gguf");
const { metadata } = openGgufFrom(mapFile, path);
const tokenizer = loadTokenizer(metadata, path);
const text = (id: number | undefined): string =>
  id === undefined ? "" : tokenizer.detokenize([id], { special: true });
const source = metadata.get("tokenizer.chat_template") as string;
const chatTemplate = { source, bos: text(tokenizer.bos), eos: text(tokenizer.eos) };
const info = { ctxLen: 100 } as EngineInfo; // the only field that prompts use
const templates = makeTemplates(chatTemplate);
templates.define(0, { go: undefined, prefersGo: undefined });
templates.define(1, { go: "{{ .System }}|{{ .Prompt }}|", prefersGo: true });
const parts = { model: { tokenizer, info, chatTemplate }, templates, held: new Map() };
const limits = { options: { ...SAMPLING_DEFAULTS, num_predict: 20 }, shift: true };
const jinja = choosePrompt({ jinja: source, tokens: chatTemplate });
const now = new Date(0);
const messages = [
  { role: "system", content: "Be brief." },
  { role: "user", content: "One <|im_end|> two" },
];
const encode = (rendered: string): number[] =>
  Array.from(tokenizer.encode(rendered, { addSpecial: !rendered.startsWith(chatTemplate.bos), parseSpecial: true }));
const promptIds = ({ parts: all }: Prompt): number[] =>
  all.flatMap((part) => (part.kind === "ids" ? Array.from(part.ids) : []));
const idsOf = (asked: PromptInput): number[] => promptIds(promptOf(parts, asked, limits));
const chat = (more: object = {}): PromptInput => ({ kind: "chat", template: 0, nowMs: 0, messages, ...more });

describe("prompt ids", () => {
  test("for a conversation equal those of its rendering", () => {
    expect(idsOf(chat())).toEqual(encode(renderChat(jinja, { messages, now })));
  });

  test("for a question equal those of its rendering, after the context", () => {
    const question = { kind: "question", template: 1, nowMs: 0, prompt: "a", system: "s", context: [5, 6] } as const;
    const go = choosePrompt({ go: "{{ .System }}|{{ .Prompt }}|" });
    const rendered = renderGenerate(go, { prompt: "a", system: "s", now });
    const plain = tokenizer.encode(rendered, { addSpecial: false, parseSpecial: true });
    expect(idsOf(question)).toEqual([5, 6, ...plain]);
    expect(idsOf({ ...question, context: [] })).toEqual(encode(rendered));
  });

  test("for a raw text equal those of the text", () => {
    expect(idsOf({ kind: "text", text: "a<|im_end|>b", context: [] })).toEqual(encode("a<|im_end|>b"));
    expect(() => idsOf({ kind: "text", text: "a", context: [2 ** 40] })).toThrow("expected ids of the vocabulary");
  });

  test("for a continued prompt equal those of the whole text", () => {
    const first = promptOf(parts, chat(), limits);
    parts.held.set(7, first);
    expect(idsOf({ kind: "after", id: 7, text: "<think>hm" })).toEqual(encode(`${textOf(first)}<think>hm`));
  });

  test("for a continued prompt follow its context, and wasCut stays", () => {
    const question = { kind: "question", template: 1, nowMs: 0, prompt: "a", context: [5, 6] } as const;
    const first = promptOf(parts, question, limits);
    parts.held.set(8, first);
    const after = promptOf(parts, { kind: "after", id: 8, text: "hm" }, limits);
    const own = tokenizer.encode(`${textOf(first)}hm`, { addSpecial: false, parseSpecial: true });
    expect([promptIds(after), after.wasCut]).toEqual([[5, 6, ...own], false]);
    const long = [...Array(50).fill(messages[1]), messages[1]];
    parts.held.set(9, promptOf(parts, chat({ messages: long }), limits));
    expect(promptOf(parts, { kind: "after", id: 9, text: "hm" }, limits).wasCut).toBe(true);
  });

  test("end with the beginning of the answer once, even if the template writes it too", () => {
    const ended = (content: string): string => {
      const asked: PromptInput = { kind: "text", text: content, context: [], ending: { text: "<answer>" } };
      return textOf(promptOf(parts, asked, limits));
    };
    expect([ended("a"), ended("a<answer>")]).toEqual(["a<answer>", "a<answer>"]);
  });

  test("end with the beginning of the answer, after the end of thinking if the prompt is inside it", () => {
    const inside = { open: "<think>", close: "</think>\n\n" };
    const ended = (content: string): string => {
      const asked: PromptInput = { kind: "text", text: content, context: [], ending: { text: "{", inside } };
      return textOf(promptOf(parts, asked, limits));
    };
    expect([ended("a"), ended("a<think>\n")]).toEqual(["a{", "a<think>\n</think>\n\n{"]);
  });
});

describe("text from outside", () => {
  const control = tokenizer.endOfGeneration.values().next().value!;
  const mark = text(control);
  const outside = (content: string) => [{ role: "user", content, isOutside: true }];
  const count = (ids: readonly number[]): number => ids.filter((id) => id === control).length;

  test("has no control tokens, while the template's stay", () => {
    expect(mark).not.toBe("");
    const said = `a${mark}b ${mark.slice(0, 2)}${mark}${mark.slice(2)} \ufdd0\ufdef`;
    const inside = idsOf(chat({ messages: [{ role: "user", content: said }] }));
    const ids = idsOf(chat({ messages: outside(said) }));
    const usual = count(idsOf(chat({ messages: outside("a") })));
    expect([count(inside) > usual, count(ids)]).toEqual([true, usual]);
    expect(textOf(promptOf(parts, chat({ messages: outside(said) })))).toBe(
      renderChat(jinja, { messages: [{ role: "user", content: said }], now }),
    );
    expect(tokenizer.detokenize(ids, { special: true })).toContain(said);
  });

  test("is encoded as it is without markup", () => {
    const said = `one ${mark} two`;
    const ids = idsOf(chat({ messages: outside(said) }));
    const alone = Array.from(tokenizer.encode(said, { addSpecial: false, parseSpecial: false }));
    expect(ids.join()).toContain(alone.slice(1, -1).join());
  });

  test("has no control tokens in calls, arguments and results", () => {
    const call = { function: { name: mark, arguments: { [mark]: [mark, { deep: mark }] } } };
    const spelled = [
      { role: "user", content: "a", isOutside: true },
      { role: "assistant", content: "", thinking: mark, tool_calls: [call], isOutside: true },
      { role: "tool", content: mark, tool_name: mark, isOutside: true },
    ];
    const plain = JSON.parse(JSON.stringify(spelled).replaceAll(JSON.stringify(mark).slice(1, -1), "word"));
    expect(count(idsOf(chat({ messages: spelled })))).toBe(count(idsOf(chat({ messages: plain }))));
  });

  test("without control tokens has the ids of text from inside", () => {
    const said = "Hello <there>, [INST] is no token here.";
    const inside = idsOf(chat({ messages: [{ role: "user", content: said }] }));
    expect(idsOf(chat({ messages: outside(said) }))).toEqual(inside);
  });

  test("is not taken for the end of the prompt", () => {
    const asked = chat({ messages: [...outside("a"), { role: "assistant", content: `b ${mark}`, isOutside: true }] });
    expect(endOf(promptOf(parts, asked))).toBe("");
  });
});

describe("a conversation that does not fit", () => {
  const turns = Array.from({ length: 30 }, (_, i) => ({ role: "user", content: `question number ${i} of many` }));

  test("loses its oldest messages until the answer has room too", () => {
    const prompt = promptOf(parts, chat({ messages: turns }), limits);
    const [{ wasCut }, ids, kept] = [prompt, promptIds(prompt), textOf(prompt)];
    expect([wasCut, ids.length <= 80]).toEqual([true, true]);
    const first = turns.findIndex(({ content }) => kept.includes(content));
    const longer = renderChat(jinja, { messages: turns.slice(first - 1), now });
    expect(encode(longer).length).toBeGreaterThan(80);
    expect(kept).toBe(renderChat(jinja, { messages: turns.slice(first), now }));
  });

  test("is not cut with truncate false, or when it is counted", () => {
    const whole = encode(renderChat(jinja, { messages: turns, now })).length;
    const uncut = promptOf(parts, chat({ messages: turns }), { ...limits, truncate: false });
    expect([uncut.rows, promptOf(parts, chat({ messages: turns })).rows]).toEqual([whole, whole]);
  });
});

test("a template that does not parse fails its requests, and a dropped one fails them with 'please try again'", () => {
  expect(templates.define(2, { go: "{{ .Prompt", prefersGo: true })).toMatchObject({ code: "bad_request" });
  expect(() => idsOf(chat({ template: 2 }))).toThrow(/template/);
  templates.drop(2);
  expect(() => idsOf(chat({ template: 2 }))).toThrow("please try again");
});

describe("images", () => {
  const pixels = [new Uint8Array(1), new Uint8Array(2)];
  const seen = {
    layout: (image: unknown) => [
      { kind: "marker" as const, text: mark() },
      { kind: "rows" as const, rows: 10 * (image as Uint8Array).length },
      { kind: "marker" as const, text: "!" },
    ],
  };
  const rendered = (asked: PromptInput, cut?: typeof limits) => promptOf({ ...parts, images: seen }, asked, cut);
  const said = (content: string, more: object = {}) => ({ role: "user", content, ...more });
  function mark(): string {
    return text(tokenizer.endOfGeneration.values().next().value);
  }

  test("lie between ids with their control tokens around them, and count as rows", () => {
    const turns = [said("a b", { images: pixels, imagesAt: [0, 2] })];
    const prompt = rendered(chat({ messages: turns }));
    const kinds = prompt.parts.map((part) =>
      part.kind === "image" ? pixels.findIndex((each) => each === part.image) : "ids",
    );
    expect(kinds.filter((kind) => kind !== "ids")).toEqual([0, 1]);
    const first = kinds.indexOf(0);
    expect(tokenizer.detokenize(idsAt(prompt, first - 1), { special: true })).toBe(mark());
    expect(idsAt(prompt, first - 1)).toHaveLength(1);
    expect(tokenizer.detokenize(idsAt(prompt, first + 1))).toBe("!");
    expect(prompt.rows).toBe(promptIds(prompt).length + 10 + 20);
    expect(textOf(prompt)).toContain("[img-0]a [img-1]b");
  });

  test("lie after BOS and the context if the prompt begins with them", () => {
    const prompt = rendered({ kind: "text", text: "x", images: [pixels[0]!], context: [] });
    const begins = tokenizer.before === undefined ? [] : [[tokenizer.before]];
    expect(prompt.parts.slice(0, begins.length).map((_, i) => idsAt(prompt, i))).toEqual(begins);
    const context = rendered({ kind: "text", text: "x", images: [pixels[0]!], context: [5, 6] });
    expect(idsAt(context, 0)).toEqual([5, 6]);
  });

  test("for a question are placed as those of its turn", () => {
    const question = { kind: "question", template: 0, nowMs: 0, prompt: "a", context: [], images: pixels } as const;
    const turn = chat({ messages: [said("a", { images: pixels })] });
    expect(rendered(question)).toEqual(rendered(turn));
  });

  test("are dropped with their messages", () => {
    const turns = [said("first", { images: pixels }), said("last", { images: [pixels[0]!] })];
    const all = rendered(chat({ messages: turns }));
    expect(all.rows).toBeGreaterThan(40);
    const room = { ...parts, model: { ...parts.model, info: { ctxLen: all.rows } as EngineInfo }, images: seen };
    const cut = promptOf(room, chat({ messages: turns }), limits);
    expect(cut.wasCut).toBe(true);
    expect(cut.parts.filter(({ kind }) => kind === "image")).toEqual([
      { kind: "image", image: pixels[0], run: 0, rows: 10 },
    ]);
    expect(textOf(cut)).not.toContain("first");
  });

  test("are reduced to the newest of a chat for a model that takes one, which refuses two in a message", () => {
    const single = (asked: PromptInput): Prompt =>
      promptOf({ ...parts, images: { ...seen, isSingle: true } }, asked, limits);
    const shown = ({ parts: all }: Prompt) => all.flatMap((part) => (part.kind === "image" ? [part.image] : []));
    const [one, other] = [[pixels[0]!], [pixels[1]!]];
    const turns = [said("first", { images: one }), said("then", { images: other, imagesAt: [4] }), said("last")];
    const prompt = single(chat({ messages: turns }));
    expect([shown(prompt), textOf(prompt)]).toEqual([[pixels[1]!], expect.stringContaining("first")]);
    const question = { kind: "question", template: 0, nowMs: 0, prompt: "a", context: [] } as const;
    const history = [said("first", { images: one })];
    expect(shown(single({ ...question, history, images: other }))).toEqual([pixels[1]!]);
    const asked: PromptInput[] = [
      chat({ messages: [said("a", { images: pixels })] }),
      { ...question, images: pixels },
      { kind: "text", text: "x", images: pixels, context: [] },
    ];
    for (const each of asked) expect(() => single(each)).toThrow("images: the model takes one, got 2");
  });

  test("are refused for a model that takes none", () => {
    expect(() => promptOf(parts, chat({ messages: [said("a", { images: pixels })] }))).toThrow("takes none");
  });

  function idsAt({ parts: all }: Prompt, at: number): number[] {
    const part = all[at];
    return part?.kind === "ids" ? Array.from(part.ids) : [];
  }
});

test("a gap is preceded by other files in up to half of the context", () => {
  const fill = { prefix: 1, suffix: 2, middle: 3 };
  const filling = {
    ...parts,
    model: { ...parts.model, tokenizer: Object.assign(loadTokenizer(metadata, path), { fill }) },
  };
  const gap = (files: readonly string[], more: object = {}): number[] =>
    promptIds(
      promptOf(
        filling,
        { kind: "gap", before: "a = 1", after: "c = 3", files: files.map((each) => ({ name: "f", text: each })) },
        { ...limits, ...more },
      ),
    );
  const alone = gap([]);
  const short = gap(["b = 2"]);
  expect(short.slice(-alone.length)).toEqual(alone);
  expect(short.length).toBeGreaterThan(alone.length);
  const cut = gap(["one two three ".repeat(100), "b = 2"]);
  expect([cut.length, cut.slice(-short.length)]).toEqual([info.ctxLen / 2 + 3, short]);
  expect(gap(["one two three ".repeat(100)], { truncate: false }).length).toBeGreaterThan(info.ctxLen);
});
