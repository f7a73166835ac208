/** The end of a chat stays in view while it grows, unless the user scrolls up. */
import { expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { eventually } from "../e2e/hearth.ts";
import { importChat } from "./import-chat.ts";
import { openPage, send, type World } from "./page.ts";

/** Distance of the list's end from its visible part, in pixels. */
const distance = (page: Page): Promise<number> =>
  page.locator(".log").evaluate((log) => log.scrollHeight - log.scrollTop - log.clientHeight);

const untilAtEnd = (page: Page): Promise<unknown> =>
  page.waitForFunction(() => {
    const { scrollHeight, scrollTop, clientHeight } = document.querySelector(".log")!;
    return scrollHeight - scrollTop - clientHeight < 2;
  });

const FORMULA = "$$\\frac{\\frac{a}{b}}{\\frac{\\frac{c}{d}}{\\frac{e}{f}}}$$\n\n";

function opens(world: () => World): void {
  test("a chat opens at its end, also if formulas are drawn later", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    const texts = Array.from({ length: 40 }, (_, i) => `Part ${i}\n\n${FORMULA.repeat(4)}`);
    await importChat(page, "Formulas", texts);
    let open = (): void => {};
    const opened = new Promise<void>((resolve) => (open = resolve));
    await page.route(/temml/, async (route) => {
      await opened;
      await route.continue();
    });
    await page.reload();
    await page.locator(".message").last().waitFor();
    await untilAtEnd(page);
    open();
    await page.locator(".message").last().locator("math").last().waitFor();
    await untilAtEnd(page);
    expect(await page.getByRole("button", { name: "Jump to the end" }).count()).toBe(0);
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

function follows(world: () => World): void {
  test("a user who scrolls up a little is not pulled back by an answer; the next message returns to the end", async () => {
    const { page, pageErrors } = await openPage(world().browser, `${world().hearth.url}/ui`);
    await importChat(
      page,
      "Long",
      Array.from({ length: 30 }, (_, i) => `Part ${i}\n\n${"Some words. ".repeat(40)}`),
    );
    await send(page, "Go on for ever.");
    await page.locator(".message[aria-busy=true] .markdown").waitFor();
    await untilAtEnd(page);
    await page.locator(".log").hover();
    const jump = page.getByRole("button", { name: "Jump to the end" });
    // a word may arrive in the frame of a turn of the wheel, which then has no effect
    const hasLeft = async (): Promise<boolean> => {
      await page.mouse.wheel(0, -40);
      return jump.isVisible();
    };
    expect(await eventually(hasLeft)).toBe(true);
    const length = (): Promise<number> =>
      page.evaluate(() => document.querySelector(".message:last-child .markdown")?.textContent.length ?? 0);
    const before = await length();
    await page.waitForFunction(
      (from) => document.querySelector(".message:last-child .markdown")!.textContent.length > from + 300,
      before,
    );
    expect(await distance(page)).toBeGreaterThan(30);
    await page.keyboard.press("Escape");
    await page.getByText("Stopped.").waitFor();
    await send(page, "And more.");
    await untilAtEnd(page);
    await page.keyboard.press("Escape");
    expect(pageErrors).toEqual([]);
  }, 60_000);
}

export const endCases = [opens, follows] as const;
