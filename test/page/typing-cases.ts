/** Input methods, paste and drop, right-to-left scripts, and browsers without storage. */
import { expect, test } from "bun:test";
import type { Locator, Page } from "playwright-core";
import { ask, NARROW, openPage, type World } from "./page.ts";

/** A key that an input method handles: as during composition, and as Safari sends the last one. */
async function pressComposing(place: Locator, key: string): Promise<void> {
  for (const more of [{ isComposing: true }, { keyCode: 229 }]) {
    await place.dispatchEvent("keydown", { key, bubbles: true, cancelable: true, ...more });
  }
}

/** An answer that does not end by itself. */
async function beginEndless(page: Page): Promise<void> {
  await page.route("**/api/chat", () => {}); // never answered
  await page.locator("#composer").fill("Go on.");
  await page.locator("button[type=submit].send:enabled").click();
  await page.getByRole("button", { name: "Stop" }).waitFor();
}

function composing(world: () => World): void {
  test("keys of an input method do not send, open, rename or stop", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    await ask(page, "Who are you?");
    await page.locator("#composer").fill("にほん");
    await pressComposing(page.locator("#composer"), "Enter");
    expect(await page.locator("#composer").inputValue()).toBe("にほん");

    await page.getByRole("button", { name: /^More about/ }).click();
    await page.getByRole("menuitem", { name: "Rename" }).click();
    const name = page.getByRole("textbox", { name: "Name of the chat" });
    await pressComposing(name, "Enter");
    await pressComposing(name, "Escape");
    expect(await name.isVisible()).toBe(true);
    await name.press("Escape");

    await page.keyboard.press("Control+k");
    const search = page.getByRole("combobox", { name: "Search chats" });
    await page.locator("#found-0").waitFor();
    await pressComposing(search, "Enter");
    expect(await search.isVisible()).toBe(true);
    await search.press("Escape");

    await beginEndless(page);
    await pressComposing(page.locator("#composer"), "Escape");
    await Bun.sleep(100);
    expect(await page.getByRole("button", { name: "Stop" }).isVisible()).toBe(true);
    await page.locator("#composer").press("Escape");
    await page.getByRole("button", { name: "Stop" }).waitFor({ state: "hidden" });
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

function hugeTexts(world: () => World): void {
  test("only a huge line has no direction of its own, because its layout would take seconds", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    const composer = page.locator("#composer");
    const bidiOf = (place: Locator) => place.evaluate((element) => getComputedStyle(element).unicodeBidi);
    const write = (text: string) =>
      composer.evaluate((element, value) => {
        (element as HTMLTextAreaElement).value = value; // typing many lines takes seconds
        element.dispatchEvent(new Event("input", { bubbles: true }));
      }, text);
    await write("lorem ipsum\n".repeat(10_000));
    expect(await bidiOf(composer)).toBe("plaintext");
    await composer.evaluate((element) => {
      const clipboardData = new DataTransfer();
      clipboardData.setData("text/plain", "lorem ipsum ".repeat(5000));
      element.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true }));
    });
    expect(await bidiOf(composer)).toBe("normal"); // before the text is there
    await write("lorem ipsum ".repeat(5000));
    expect(await bidiOf(composer)).toBe("normal");
    await page.route("**/api/chat", () => {}); // never answered
    await page.locator("button[type=submit].send:enabled").click();
    await page.getByRole("button", { name: "Stop" }).waitFor();
    expect(await bidiOf(page.locator(".message.user .plain"))).toBe("normal");
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

/** Pixels from the left and from the right side of an element to the first line of its text. */
const margins = (place: Locator): Promise<[number, number]> =>
  place.evaluate((element) => {
    const range = document.createRange();
    range.selectNodeContents(element);
    const [text, box] = [range.getClientRects()[0]!, element.getBoundingClientRect()];
    return [text.left - box.left, box.right - text.right];
  });

/** True if a text field handles the paste or drop by itself: text in these types, and a file. */
function isLeftToField(page: Page, kind: "paste" | "drop", types: readonly string[], withFile: boolean) {
  return page.locator("#composer").evaluate(
    (area, { kind, types, withFile }) => {
      const data = new DataTransfer();
      for (const type of types) data.setData(type, "<b>text</b>");
      if (withFile) data.items.add(new File(["no picture"], "cells.txt"));
      const init = { bubbles: true, cancelable: true };
      if (kind === "paste") return area.dispatchEvent(new ClipboardEvent(kind, { ...init, clipboardData: data }));
      const events = ["dragover", kind].map((name) => new DragEvent(name, { ...init, dataTransfer: data }));
      return events.map((event) => area.dispatchEvent(event)).every(Boolean);
    },
    { kind, types, withFile },
  );
}

function pasting(world: () => World): void {
  test("text is pasted and dropped as text, even if an office program adds a picture", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    const cells = ["text/plain", "text/html"];
    expect(await isLeftToField(page, "paste", cells, true)).toBe(true);
    expect(await isLeftToField(page, "drop", cells, false)).toBe(true);
    expect(await page.locator(".attachments").count()).toBe(0);
    expect(await isLeftToField(page, "paste", ["text/html"], true)).toBe(false); // a picture of a page
    expect(await isLeftToField(page, "drop", [], true)).toBe(false);
    await page.locator(".attachments li").nth(1).waitFor();
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

function rightToLeft(world: () => World): void {
  test("a paragraph is aligned to the side where its script begins", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    const list = "1. אחד\n2. שתיים\n\n> ציטוט\n\n| א | ב |\n|---|---|\n| 1 | 2 |\n\n- one";
    await answerWith(page, `שלום עולם\n\nHello there\n\n\`\`\`\nשלום = 1\n\`\`\`\n\n${list}`);
    await ask(page, "مرحبا");
    const [hebrew, english] = [0, 1].map((i) => page.locator(".message.assistant .markdown p").nth(i));
    const [left, right] = await margins(hebrew!);
    expect([left > 100, Math.abs(right) < 2]).toEqual([true, true]);
    expect(Math.abs((await margins(english!))[0])).toBeLessThan(2);
    expect(Math.abs((await margins(page.locator(".message.assistant .markdown pre code")))[0])).toBeLessThan(2);
    const blocks = page.locator(".message.assistant .markdown :is(ol, blockquote, table, ul)");
    const directions = await blocks.evaluateAll((all) => all.map((each) => getComputedStyle(each).direction));
    expect(directions).toEqual(["rtl", "rtl", "rtl", "ltr"]); // numbers, bars and first columns are at that side
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

/** Replaces the model's answers. */
async function answerWith(page: Page, content: string): Promise<void> {
  const lines = [
    { message: { content }, done: false },
    { message: {}, done: true, done_reason: "stop" },
  ];
  const body = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  await page.route("**/api/chat", (route) => route.fulfill({ body }));
}

function wideTable(world: () => World): void {
  test("a wide table scrolls on a narrow page, and breaks no word", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`, NARROW);
    const row = (cell: string): string => `|${` ${cell} |`.repeat(9)}\n`;
    await answerWith(page, row("Consequence") + row("---") + row("Small"));
    await ask(page, "Compare.");
    const shown = await page.locator(".markdown .table").evaluate((table) => ({
      scrolls: table.scrollWidth > table.clientWidth,
      heights: [...table.querySelectorAll("th, td")].map((cell) => cell.getBoundingClientRect().height < 45),
    }));
    expect(shown).toEqual({ scrolls: true, heights: Array<boolean>(18).fill(true) });
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

function nothingKept(world: () => World): void {
  test.each(["forbidden", "full"])(
    "the page works with %s storage, and remembers the tab's own changes",
    async (how) => {
      const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
      await page.addInitScript((isForbidden) => {
        const fail = (): never => {
          throw new DOMException("no room", isForbidden ? "SecurityError" : "QuotaExceededError");
        };
        if (!isForbidden) return void (Storage.prototype.setItem = fail);
        for (const name of ["localStorage", "sessionStorage", "indexedDB"]) {
          Object.defineProperty(globalThis, name, { get: fail });
        }
      }, how === "forbidden");
      await page.reload();
      await ask(page, "Who are you?");
      expect((await page.locator(".message.assistant .body").innerText()).length).toBeGreaterThan(3);
      await page.locator("#composer").fill("Not sent yet");
      await page.getByRole("link", { name: "Models" }).click();
      await page.goBack();
      await page.waitForFunction(
        () => document.querySelector<HTMLTextAreaElement>("#composer")?.value === "Not sent yet",
      );
      expect(pageErrors).toEqual([]);
    },
    60_000,
  );
}

export const typingCases = [composing, hugeTexts, pasting, rightToLeft, wideTable, nothingKept] as const;
