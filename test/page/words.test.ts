/** The words of the page, without a page. */
import { expect, test } from "bun:test";
import { signal } from "@preact/signals";
import { counted } from "../../src/page/app/words/count.ts";
import { en } from "../../src/page/app/words/en.ts";
import { LANGUAGES, makeWords } from "../../src/page/app/words/index.ts";

test("a number in a sentence has the plural form and the digits of its language", () => {
  expect(en.chat.deleted(1)).toBe("Deleted 1 message.");
  expect(en.chat.deleted(1000)).toBe("Deleted 1,000 messages.");
  expect(counted("de", 1000, { one: "# Chat", other: "# Chats" })).toBe("1.000 Chats");
  expect(counted("fr", 0, { one: "# message", other: "# messages" })).toBe("0 message");
  expect(counted("ja", 1, { other: "#件" })).toBe("1件");
});

/** The `lang` of a page, and its words. */
async function pageIn(set: string, ...preferred: string[]) {
  const root = { lang: "en" } as HTMLElement;
  const language = signal(set);
  return { root, language, words: await makeWords({ language, preferred, root }) };
}

test("the page's language is the setting, else the browser's first known one, else English", async () => {
  const codeFor = async (...codes: [string, ...string[]]): Promise<string> => (await pageIn(...codes)).root.lang;
  expect(await codeFor("auto", "de-AT", "fr")).toBe("de");
  expect(await codeFor("auto", "pt-BR", "DE")).toBe("de");
  expect(await codeFor("auto", "toString", "pt")).toBe("en");
  expect(await codeFor("en", "de")).toBe("en");
  expect(await codeFor("no-longer-there", "de")).toBe("de");
  expect(await codeFor("auto")).toBe("en");
});

test("the words are loaded with the page, and change with the setting", async () => {
  const { root, language, words } = await pageIn("auto", "de-CH");
  expect(words.value).toBe(await LANGUAGES.de.load());
  language.value = "en";
  await Promise.resolve();
  expect([words.value, root.lang]).toEqual([en, "en"]);
  [language.value, language.value] = ["de", "en"]; // the last choice wins, whichever loads first
  await LANGUAGES.de.load();
  await Promise.resolve();
  expect([words.value, root.lang]).toEqual([en, "en"]);
});
