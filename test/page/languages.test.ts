/** Every language of the page has the same texts as English, with its own words and typography. */
import { describe, expect, test } from "bun:test";
import { en } from "../../src/page/app/words/en.ts";
import CATALOGUE from "../../models/catalogue.json";
import { LANGUAGES } from "../../src/page/app/words/index.ts";

/** A text by its path; of a function, its results for 11, 22 and so on. */
interface Text {
  readonly path: string;
  readonly text: string;
  /** Number of a function's parameters. */
  readonly takes: number;
}

/** A number, or if an object is expected, one with a state. */
const given = (value: number): object =>
  Object.assign(Object(value), { state: `state ${value}`, lost: `lost ${value}` });

function textsOf(words: unknown, path = ""): Text[] {
  if (typeof words === "function") {
    return [{ path, text: String(words(given(11), given(22), given(33))), takes: words.length }];
  }
  if (typeof words !== "object" || words === null) return [{ path, text: String(words), takes: 0 }];
  return Object.entries(words)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([key, each]) => textsOf(each, path === "" ? key : `${path}.${key}`));
}

/** The parameters that a text contains. */
const parts = (text: string): string[] => (text.match(/(state |lost )?(11|22|33)(?!\d)/g) ?? []).toSorted();

/** Names, units and terms that equal English in other languages, too. A different text is allowed. */
const SAME = new Set(
  [
    "Gateway",
    "System",
    "Version",
    "Name",
    "Modelfile",
    "Details",
    "Body",
    "Chats",
    "Chat",
    "Catalogue",
    "Embeddings",
    "Downloads",
    "Backend",
    "Status",
  ]
    .concat(["Top p", "Top k", "Min p", "Seed", "Prompt", "Code", "Code in 11", "Message", "Messages", "No", "true"])
    .concat("22") // the English description of a model without another
    .concat(["Architecture", "Experts", "Tokens", "11 tokens", "11 tokens/s", "11/s", "Prompts", "Text", "11 pages"]),
);

const english = textsOf(en);
const others = Object.entries(LANGUAGES).filter(([code]) => code !== "en");
const loaded = await Promise.all(others.map(async ([code, { load }]) => [code, textsOf(await load())] as const));

describe.each(loaded)("%s", (_, texts) => {
  test("has every text of English, with the same placeholders", () => {
    const shape = (all: readonly Text[]): unknown[] => all.map(({ path, takes, text }) => [path, takes, parts(text)]);
    expect(shape(texts)).toEqual(shape(english));
  });

  test("has no text in English by accident", () => {
    const isLeft = ({ text }: Text, i: number): boolean => text === english[i]!.text && !SAME.has(text);
    expect(texts.filter(isLeft)).toEqual([]);
  });
});

test("each name and term that may equal English does so in some language", () => {
  const all = new Set(loaded.flatMap(([, texts]) => texts.map(({ text }) => text)));
  expect([...SAME].filter((each) => !all.has(each))).toEqual([]);
});

/** Code in texts keeps its own punctuation. */
const CODE = /\[\{.*\}\]|(NAME|X-GitHub-Event): \w+/g;

/** Wrong typography in a text of each language. */
const WRONG: Readonly<Record<string, RegExp>> = {
  de: /"|\.\.\.|\S…/,
  es: /"|\.\.\.|^[^¿]*\?|^[^¡]*!/,
  fr: /"|'|\.\.\.|(?<![\u00a0\u202f])[;!?»](?!\S)|(?<!\u00a0):(?= |$)|«(?!\u00a0)/,
  ja: /[\p{scx=Hira}\p{scx=Kana}\p{scx=Hani}] ?[,.:;!?()]|[。、：（）？「」] | [。、：（）？「」]|您/u,
  zh: /\p{sc=Hani} ?[,.:;!?()]|[。，：；（）？“”] | [。，：；（）？“”]|您/u,
};

test.each(loaded)("%s has the punctuation and spaces of its typography", (code, texts) => {
  const wrong = WRONG[code]!;
  expect(texts.filter(({ text }) => wrong.test(text.replace(CODE, "code")))).toEqual([]);
});

test.each(Object.keys(WRONG))("%s describes every model of the catalogue", async (code) => {
  const { catalogue } = await LANGUAGES[code as keyof typeof LANGUAGES].load();
  for (const { name, description } of CATALOGUE.models) {
    const text = catalogue.describe(name, description);
    expect([name, text === description, WRONG[code]!.test(text)]).toEqual([name, false, false]);
  }
});

test("numbers take the forms of each language", async () => {
  const said = async (code: keyof typeof LANGUAGES, counts: readonly number[]): Promise<string[]> => {
    const { chat } = await LANGUAGES[code].load();
    return counts.map(chat.tokens);
  };
  const counts = [0, 1, 2, 1234, 1_000_000];
  expect(await said("en", counts)).toEqual(["0 tokens", "1 token", "2 tokens", "1,234 tokens", "1,000,000 tokens"]);
  expect(await said("de", counts)).toEqual(["0 Tokens", "1 Token", "2 Tokens", "1.234 Tokens", "1.000.000 Tokens"]);
  expect(await said("es", counts)).toEqual(["0 tokens", "1 token", "2 tokens", "1234 tokens", "1.000.000 de tokens"]);
  expect(await said("fr", counts)).toEqual(
    ["0 token", "1 token", "2 tokens", "1 234 tokens", "1 000 000 de tokens"].map((each) =>
      each.replace(/(?<=\d) (?=\d)/g, "\u202f"),
    ),
  );
  expect(await said("ja", [1, 2, 1234])).toEqual(["1 トークン", "2 トークン", "1,234 トークン"]);
  expect(await said("zh", [1, 2, 1234])).toEqual(["1 个 token", "2 个 token", "1,234 个 token"]);
});
