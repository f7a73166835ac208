/** Every view in a language that the seed draws: room for its texts at both widths, and nothing that axe finds. */
import { expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { LANGUAGES } from "../../src/page/app/words/index.ts";
import type { Words } from "../../src/page/app/words/index.ts";
import { drawn } from "../seed.ts";
import { violationsOf } from "./axe.ts";
import { ask, GATEWAY_TOKEN, keepShot, NARROW, openPage, WIDE, type World } from "./page.ts";

const SIZES = [
  { viewport: WIDE, colorScheme: "light" },
  { viewport: NARROW, colorScheme: "dark" },
] as const;

/** English has the cases of `view-cases.ts`. */
const LOCALES = { de: "de-AT", es: "es-MX", fr: "fr-CA", ja: "ja", zh: "zh-CN" } as const satisfies Partial<
  Record<keyof typeof LANGUAGES, string>
>;
const CODES = Object.keys(LOCALES) as (keyof typeof LOCALES)[];

/** Text that is cut or outside of the page, except scrolling elements and long names. */
const cutTexts = (page: Page): Promise<string[]> =>
  page.evaluate(() => {
    const isAside = innerWidth < 800; // the list of chats is beside the page
    const others = `.table, .model-button${isAside ? ", .sidebar" : ""}`;
    const all = [...document.querySelectorAll<HTMLElement>("button, .button, [role=tab], summary, label, dt, h1, h2")];
    const isCut = (each: HTMLElement): boolean => {
      const { left, right } = each.getBoundingClientRect();
      return each.scrollWidth > each.clientWidth + 1 || left < 0 || right > innerWidth + 1;
    };
    return all
      .filter((each) => each.checkVisibility() && !each.closest(others) && isCut(each))
      .map((each) => `${each.className}: ${each.textContent}`);
  });

async function lookAt(page: Page, name: string, { viewport, colorScheme }: (typeof SIZES)[number]): Promise<void> {
  expect([name, await cutTexts(page)]).toEqual([name, []]);
  expect([name, await page.evaluate(() => document.documentElement.scrollWidth)]).toEqual([name, viewport.width]);
  expect([name, await violationsOf(page)]).toEqual([name, []]);
  await keepShot(page, `${name}-${viewport.width}-${colorScheme}`);
}

const VIEWS: readonly { readonly view: string; readonly until: (words: Words) => string }[] = [
  { view: "chat", until: () => ".message.assistant" },
  { view: "models", until: () => ".card" },
  { view: "gateway", until: () => "[role=tab]" },
  { view: "system", until: () => ".table" },
];

const languages = drawn("languages of the page", CODES, 1).map((code) => (world: () => World): void => {
  test(`${code}: the texts of every view fit at both widths, and axe finds no violation`, async () => {
    const { browser, hearth } = world();
    const words = await LANGUAGES[code].load();
    const { page, pageErrors } = await openPage(browser, `${hearth.url}/ui`, WIDE, LOCALES[code]);
    expect(await page.locator("html").getAttribute("lang")).toBe(code);
    await page.evaluate((token) => sessionStorage.setItem("hearth-gateway-token", token), GATEWAY_TOKEN);
    await page.getByRole("heading", { name: words.welcome.title }).waitFor();
    await ask(page, "Hi.");
    const chat = page.url();
    for (const size of SIZES) {
      await page.setViewportSize(size.viewport);
      await page.emulateMedia({ colorScheme: size.colorScheme });
      for (const { view, until } of VIEWS) {
        await page.goto(view === "chat" ? chat : `${hearth.url}/ui#/${view}`);
        await page.locator(until(words)).first().waitFor();
        await lookAt(page, `${code}-${view}`, size);
      }
      await page.goto(chat);
      await page.getByRole("button", { name: words.options.title }).click();
      await page.getByRole("textbox", { name: words.chat.systemPrompt }).waitFor();
      await lookAt(page, `${code}-settings`, size);
      await page.keyboard.press("Escape");
    }
    expect(pageErrors).toEqual([]);
  }, 180_000);
});

export const languageCases = [...languages] as const;
